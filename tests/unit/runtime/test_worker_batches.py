"""What a worker samples has the columns of the Ray that its trainer's config was written for."""

import numpy as np
import pytest

from rllib_compat.adapters import adapt_callbacks
from rllib_compat.config import translate
from rllib_compat.runtime import as_legacy, use_compat_env_runners, with_trainer


@pytest.fixture(params=["0.8.5", "1.0.1", "1.13.0"])
def sampled(request):
    """A Ray, and two fragments of five steps."""
    old = {"env": "CartPole-v1", "num_workers": 0}
    config = translate(old, algorithm="PG", legacy_ray=request.param).algorithm_config
    config = config.copy(copy_frozen=False)
    config.callbacks(with_trainer(adapt_callbacks(None), legacy_ray=request.param))
    use_compat_env_runners(config)
    worker = as_legacy(config.env_runner_cls(config=config, worker_index=0, num_workers=0))
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
