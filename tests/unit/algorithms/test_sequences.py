"""Configs of R2D2 and RNNSAC train, or are refused, as a real Ray 1.13.0 trained them or failed.

`tests/legacy/losses/record_sequences.py` asked it.
"""

import json

import gymnasium
import numpy as np
import pytest

pytest.importorskip("ray")

from ray.rllib.models import ModelCatalog

from rllib_compat import translate
from rllib_compat.algorithms import use_legacy_learners, use_legacy_networks
from rllib_compat.ray_versions import algorithms, startup
from rllib_compat.runtime import use_compat_env_runners
from tests.envs import SampledEnv
from tests.legacy.losses.remembering import Remembering
from tests.legacy.losses.sequences import CASES
from tests.marks import OTHERS_WARNINGS
from tests.unit.algorithms.test_losses import RECORDS

pytestmark = OTHERS_WARNINGS

RECORDED = json.loads((RECORDS / "sequences.json").read_text())
FAILED = [case for case in CASES if "error" in RECORDED[case]]


class World(SampledEnv):
    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (4,), np.float32)
    action_space = gymnasium.spaces.Discrete(3)
    length, liked = 11, 1


def translated(case, **more):
    algorithm, old = CASES[case]
    return translate({**old, **more}, algorithm=algorithm, legacy_ray="1.13.0", old_networks=True)


@pytest.mark.parametrize("case", FAILED)
def test_what_ray_1_13_failed_with_is_refused(case):
    assert translated(case).refused


@pytest.mark.parametrize("case", [case for case in CASES if case not in FAILED])
def test_what_ray_1_13_trained_trains(case):
    algorithm, old = CASES[case]
    ModelCatalog.register_custom_model("remembering", Remembering)
    translation = translated(case, num_workers=0)
    assert not translation.refused
    config = translation.algorithm_config.environment(World)
    use_legacy_networks(config, old, algorithm=algorithm, legacy_ray="1.13.0")
    use_legacy_learners(config, translation.legacy_training)
    use_compat_env_runners(config)
    with startup.without_cluster():
        made = algorithms.build_algorithm(config)
        before = weights(made)
        for _ in range(6):
            made.training_step()
        after = weights(made)
    moved = [np.abs(after[name] - before[name]).max() for name in before]
    assert all(np.isfinite(moved))
    assert sum(change > 0 for change in moved) > len(moved) // 2


@pytest.mark.parametrize("algorithm", ["R2D2", "RNNSAC"])
def test_each_of_several_workers_has_an_epsilon_of_its_own(algorithm):
    translation = translated(f"{algorithm} of two workers")
    assert translation.calls["training"]["per_worker_exploration"]


def weights(algorithm):
    module = algorithm.learner_group._learner.module["default_policy"].unwrapped()
    return {name: np.array(value) for name, value in module.net.state_dict().items()}
