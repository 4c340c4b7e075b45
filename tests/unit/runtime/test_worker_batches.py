"""What a worker samples has the columns of the Ray that its trainer's config was written for."""

import numpy as np
import pytest
import torch

from rllib_compat.adapters import adapt_callbacks
from rllib_compat.config import translate
from rllib_compat.ray_versions import env_runners
from rllib_compat.runtime import as_legacy, use_compat_env_runners, with_trainer


def make_worker(algorithm, ray, **more):
    old = {"env": "CartPole-v1", "num_workers": 0, **more}
    config = translate(old, algorithm=algorithm, legacy_ray=ray).algorithm_config
    config = config.copy(copy_frozen=False)
    config.callbacks(with_trainer(adapt_callbacks(None), legacy_ray=ray))
    use_compat_env_runners(config)
    return as_legacy(config.env_runner_cls(config=config, worker_index=0, num_workers=0))


@pytest.fixture(params=["0.8.5", "1.0.1", "1.13.0"])
def sampled(request):
    """A Ray, and two fragments of five steps."""
    worker = make_worker("PG", request.param)
    return request.param, [worker.sample(num_timesteps=5) for _ in range(2)]


def test_batches_have_the_steps_before_until_ray_0_8(sampled):
    ray, (first, second) = sampled
    if ray != "0.8.5":
        assert "prev_actions" not in first
        return
    assert first["prev_actions"].tolist() == [0, *first["actions"][:-1]]
    assert first["prev_rewards"].tolist() == [0, 1, 1, 1, 1]
    assert second["prev_actions"].tolist() == [first["actions"][-1], *second["actions"][:-1]]


def test_dones_of_ray_1_0_are_whole_numbers(sampled):
    ray, batches = sampled
    kind = np.int32 if ray == "1.0.1" else np.bool_
    assert {batch["dones"].dtype.type for batch in batches} == {kind}
    assert next(batches[0].rows())["dones"] == 0


def test_states_of_a_recurrent_policy_go_on_and_its_critic_knows_them():
    worker = make_worker("PPO", "1.13.0", model={"use_lstm": True, "lstm_cell_size": 4})
    assert "vf_preds" not in worker.sample(num_timesteps=1)  # nobody has sent a critic
    worker.set_weights(worker.get_weights())
    env_runners.reset_at_the_next_sample(worker.env_runner)
    first, second = (worker.sample(num_timesteps=3) for _ in range(2))  # no episode is shorter
    assert not np.any(first["state_in_0"][0])
    model = worker.get_policy().model
    before = []
    for i in range(len(model.get_initial_state())):
        assert np.array_equal(second[f"state_in_{i}"][0], first[f"state_out_{i}"][-1])
        before.append(torch.as_tensor(second[f"state_in_{i}"][:1]))
    model({"obs": torch.as_tensor(second["obs"])}, before, torch.tensor([3]))
    assert np.allclose(second["vf_preds"], model.value_function().detach(), atol=1e-6)
    assert "advantages" in second
