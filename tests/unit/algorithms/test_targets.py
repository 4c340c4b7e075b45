"""Algorithms learn, and targets follow, after as many steps as in Ray 1.13.0 and 0.8.5.

`tests/legacy/losses/record_targets.py` made the numbers, with these Rays and torch.
"""

import json

import pytest

pytest.importorskip("ray")

import gymnasium
import numpy as np
import torch
from ray.rllib.core import DEFAULT_MODULE_ID

from rllib_compat import translate
from rllib_compat.algorithms import may_replay_columns, replay_columns, use_legacy_learners
from rllib_compat.ray_versions import algorithms, startup
from rllib_compat.runtime import use_compat_env_runners
from tests.marks import OTHERS_WARNINGS
from tests.unit.algorithms.test_losses import RECORDS

pytestmark = OTHERS_WARNINGS

RAYS = ("1.13.0", "0.8.5")
RECORDED = {
    f"{ray} {case}": (ray, told)
    for ray in RAYS
    for case, told in json.loads((RECORDS.parent / ray / "targets.json").read_text()).items()
}
ROUND = {"num_workers": 0, "train_batch_size": 8, "min_time_s_per_reporting": 0}


class Walk(gymnasium.Env):
    """An episode has seven steps."""

    observation_space = gymnasium.spaces.Box(-10.0, 10.0, (2,), np.float32)
    #: How many steps were made, in all.
    steps = 0

    def __init__(self, config):
        box = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(3) if config["discrete"] else box

    def reset(self, **_):
        self.at = 0
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.at += 1
        Walk.steps += 1
        return np.full(2, self.at, np.float32), 1.0, self.at == 7, False, {}


def algorithm_of(algorithm, told, ray):
    """What a trainer builds of an old config, while no Ray is running."""
    old = {**ROUND, **told, "env_config": {"discrete": algorithm == "DQN"}}
    translation = translate(old, algorithm=algorithm, legacy_ray=ray)
    config = translation.algorithm_config.environment(Walk)
    use_legacy_learners(config, translation.legacy_training)
    if may_replay_columns(config):
        replay_columns(config)
    use_compat_env_runners(config)
    return algorithms.build_algorithm(config)


def numbers(nets):
    return torch.cat([p.detach().flatten() for _, target in nets for p in target.parameters()])


@pytest.mark.parametrize("case", RECORDED)
def test_targets_follow_after_as_many_steps(case):
    ray, recorded = RECORDED[case]
    learned, followed = [], []
    with startup.without_cluster():
        algorithm = algorithm_of(recorded["algorithm"], recorded["config"], ray)
        learner = algorithm.learner_group._learner
        after = learner.after_gradient_based_update
        module = learner.module[DEFAULT_MODULE_ID].unwrapped()

        def see(**told):
            learned.append(Walk.steps)
            before = numbers(module.get_target_network_pairs())
            after(**told)
            if not torch.equal(before, numbers(module.get_target_network_pairs())):
                followed.append([Walk.steps, len(learned)])

        learner.after_gradient_based_update = see
        Walk.steps = 0
        while Walk.steps < recorded["learned"][-1]:
            algorithm.training_step()
    last = recorded["learned"][-1]
    assert [at for at in learned if at <= last] == recorded["learned"]
    assert [told for told in followed if told[0] <= last] == recorded["followed"]
