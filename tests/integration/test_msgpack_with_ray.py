"""Ray itself opens the msgpack checkpoints that are written here."""

from __future__ import annotations

import numpy as np
import pytest

from rllib_compat.formats import read_checkpoint, write_msgpack
from tests.legacy.cases import find

pytestmark = [
    pytest.mark.ray,
    # Ray hands read-only arrays of msgpack_numpy to torch.
    pytest.mark.filterwarnings("ignore:.*not writable:UserWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*:UserWarning:ray.*"),
]

CASES = [
    case
    for case in find(algorithm="PPO", framework="torch")
    if case.ray in ("2.1.0", "2.3.1", "2.10.0", "2.35.0")
    and case.stack == "old"
    and case.path.name
    in ("ppo-torch-small-relu", "ppo-torch-freelogstd", "ppo-torch-vfshare", "ppo-torch-ma-tuples")
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_ray_restores_the_policies_of_an_older_ray_with_weights_and_optimizer(case, tmp_path):
    from ray.rllib.policy.policy import Policy
    from ray.rllib.utils.checkpoints import get_checkpoint_info

    checkpoint = read_checkpoint(case.checkpoint)
    write_msgpack(checkpoint, tmp_path)
    info = get_checkpoint_info(str(tmp_path))
    assert info["format"] == "msgpack"
    assert info["policy_ids"] == set(checkpoint.policies)
    for policy_id, state in checkpoint.policies.items():
        policy = Policy.from_checkpoint(str(tmp_path / "policies" / policy_id))
        for name, array in policy.get_weights().items():
            np.testing.assert_array_equal(array, state.weights[name])
        assert policy.kl_coeff == state.kl_coeff
        assert policy.global_timestep == state.global_timestep
        (restored,) = (optimizer.state_dict() for optimizer in policy._optimizers)
        for number, slots in state.optimizer[0]["state"].items():
            for name in ("exp_avg", "exp_avg_sq"):
                np.testing.assert_array_equal(restored["state"][number][name], slots[name])
        expected = case.expected(policy_id)
        inputs = {"obs": np.asarray(expected.inputs)}
        _, _, extra = policy.compute_actions_from_input_dict(inputs, explore=False)
        np.testing.assert_allclose(extra["action_dist_inputs"], expected.logits, atol=1e-5)


@pytest.mark.usefixtures("quiet_ray")
def test_ray_goes_on_training_from_a_checkpoint_of_its_own_old_stack(load, tmp_path):
    from ray.rllib.algorithms.ppo import PPOConfig

    config = (
        PPOConfig()
        .api_stack(enable_rl_module_and_learner=False, enable_env_runner_and_connector_v2=False)
        .environment("CartPole-v1")
        .env_runners(num_env_runners=0)
        .training(train_batch_size=100, minibatch_size=50, num_epochs=1)
        .training(model={"fcnet_hiddens": [8]})
    )
    algorithm = getattr(config, "build_algo", config.build)()
    algorithm.train()
    algorithm.save(str(tmp_path / "old"))
    weights = algorithm.get_weights()["default_policy"]
    algorithm.stop()
    new = tmp_path / "new"
    new.mkdir()
    write_msgpack(read_checkpoint(tmp_path / "old"), new)
    again = load(new)
    for name, array in again.get_weights()["default_policy"].items():
        np.testing.assert_array_equal(array, weights[name])
    assert again.train()["training_iteration"] == 2
