"""Checkpoints of recurrent networks: today's Ray loads them, and trains and acts on."""

import numpy as np
import pytest

from rllib_compat import Given, convert
from tests.legacy.cases import find
from tests.marks import CONVERSIONS

pytestmark = CONVERSIONS

# With previous actions (a module of ours that env runners feed), the default module, attention.
CASES = [
    next(c for c in find(ray=ray) if c.path.name == name)
    for ray, name in (
        ("1.13.0", "ppo-torch-lstm-prev"),
        ("2.0.1", "ppo-torch-lstm"),
        ("1.13.0", "ppo-torch-attention"),
    )
]


@pytest.mark.matrix
@pytest.mark.parametrize("case", CASES, ids=str)
def test_training_goes_on_from_the_old_memory_and_policy(case, tmp_path):
    from ray.rllib.algorithms.algorithm import Algorithm

    given = Given(algorithm="PPO", env="CartPole-v1")
    done = convert(case.checkpoint, tmp_path / "new", given=given, inputs=60)
    assert done.largest_difference < 1e-4
    algorithm = Algorithm.from_checkpoint(str(tmp_path / "new"))
    result = algorithm.train()
    assert result["training_iteration"] == done.checkpoint.counters.iteration + 1
    # What was sampled came from the policy that learned: the first update hardly moves it.
    (losses,) = (v for k, v in result["learners"].items() if k != "__all_modules__")
    assert np.isfinite(losses["total_loss"])
    assert abs(losses["mean_kl_loss"]) < 0.05
    algorithm.stop()
