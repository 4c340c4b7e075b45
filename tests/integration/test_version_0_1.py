"""Checkpoints that version 0.1 wrote name modules which have moved since; they load as before."""

import shutil
import sys

import numpy as np
import pytest
from packaging.version import Version

from rllib_compat import ray_versions
from rllib_compat.formats.layouts import read
from tests.legacy.cases import MUSEUM
from tests.marks import CONVERSIONS, marked

pytestmark = [
    *CONVERSIONS,
    pytest.mark.skipif(
        ray_versions.installed() < Version("2.60"), reason="they were written for Ray 2.60"
    ),
]
WRITTEN = MUSEUM / "converted_0_1"
PYTHON_3_11 = pytest.mark.skipif(
    sys.version_info[:2] != (3, 11), reason="it holds functions as Python 3.11's bytecode"
)
NAMES = marked(["demo", "filter", "previous_steps", "soft_actor_critic"], {"soft_actor_critic"})


@pytest.fixture(params=[*NAMES, pytest.param("trained", marks=PYTHON_3_11)])
def written(request, tmp_path):
    return shutil.copytree(WRITTEN / request.param, tmp_path / "checkpoint")


def test_an_algorithm_comes_back_with_its_weights(written):
    from ray.rllib.algorithms.algorithm import Algorithm

    algorithm = Algorithm.from_checkpoint(str(written))
    try:
        learned = ray_versions.local_learner(algorithm).module
        for policy_id, policy in read(written).policies.items():
            state = learned[policy_id].get_state()
            assert state.keys() == policy.weights.keys()
            assert all(np.array_equal(state[name], policy.weights[name]) for name in state)
    finally:
        algorithm.stop()


def test_modules_come_back_alone(written):
    from ray.rllib.core.rl_module.rl_module import RLModule

    for policy_id, policy in read(written).policies.items():
        folder = written / "learner_group/learner/rl_module" / policy_id
        state = RLModule.from_checkpoint(str(folder)).get_state()
        assert 0 < len(state.keys() & policy.weights.keys()) == len(state)  # no targets alone
        assert all(np.array_equal(state[name], policy.weights[name]) for name in state)


@PYTHON_3_11
def test_a_trainers_checkpoint_trains_on_with_its_callbacks_mapping_and_filters(tmp_path):
    from ray.rllib.algorithms.algorithm import Algorithm

    written = shutil.copytree(WRITTEN / "trained", tmp_path / "checkpoint")
    algorithm = Algorithm.from_checkpoint(str(written))
    try:
        result = algorithm.train()
        assert result["training_iteration"] == 2
        assert result["custom_metrics"]["length_max"] == result["episode_len_mean"] == 6
        assert set(result["policy_reward_mean"]) == {"a", "b"}
    finally:
        algorithm.stop()
