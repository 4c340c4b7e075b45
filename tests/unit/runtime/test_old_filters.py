"""An observation filter gives what it gave in Ray 1.13.0, fragment by fragment.

`tests/legacy/losses/record_filters.py` made the numbers.
"""

import numpy as np
import pytest

pytest.importorskip("ray")

import gymnasium
from ray.rllib.connectors.env_to_module import MeanStdFilter

from rllib_compat import translate
from rllib_compat.runtime import use_compat_env_runners
from tests.marks import OTHERS_WARNINGS
from tests.unit.algorithms.recordings import Recording, close
from tests.unit.algorithms.test_losses import RECORDS

pytestmark = OTHERS_WARNINGS

RECORDED = Recording(RECORDS / "filters.npz")


class Walk(gymnasium.Env):
    """Observations depend on the step and on where episodes begin; they have 20 steps."""

    observation_space = gymnasium.spaces.Box(-100.0, 100.0, (3,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, told):
        self.first = told["first"]

    def seen(self):
        return np.array([self.at + self.first, self.at % 3, 5.0], np.float32)

    def reset(self, **_):
        self.at = 0
        return self.seen(), {}

    def step(self, action):
        self.at += 1
        return self.seen(), 1.0, self.at >= 20, False, {}


def runner_of(first):
    old = {"num_workers": 0, "observation_filter": "MeanStdFilter"}
    config = translate(old, algorithm="PPO", legacy_ray="1.13.0").algorithm_config
    config.environment(Walk, env_config={"first": first})
    use_compat_env_runners(config)
    return config.env_runner_cls(config=config, worker_index=0)


def filter_of(runner):
    (piece,) = (c for c in runner._env_to_module.connectors if isinstance(c, MeanStdFilter))
    return piece


def same(piece, recorded):
    (told,) = piece._filters.values()
    found = told.running_stats
    close([found.num_pushes], [recorded["count"]], 0)
    close(found.mean, recorded["mean"], 1e-6)
    close(found.std, recorded["std"], 1e-6)


def test_what_policies_see_and_the_statistics_are_those_of_ray_1_13():
    runner = runner_of(0.0)
    for number in range(3):
        episodes = runner.sample(num_timesteps=30)
        seen = [episode.get_observations(slice(0, len(episode))) for episode in episodes]
        close(np.concatenate(seen), RECORDED.found[f"{number}.obs"], 1e-5)
        if number != 1:  # an episode has ended, whose successor has not begun here
            same(filter_of(runner), RECORDED.below(str(number)))
    runner.stop()


def test_workers_add_up_what_they_have_seen_as_those_of_ray_1_13():
    """After each iteration all have the statistics of all, and what each saw counts once."""
    local, workers = filter_of(runner_of(0.0)), [runner_of(0.0), runner_of(7.0)]
    for number in range(3):
        for worker in workers:
            worker.sample(num_timesteps=30)
        merged = local.merge_states([filter_of(worker).get_state() for worker in workers])
        for worker in workers:
            filter_of(worker).set_state(merged)
        if number != 1:
            for worker in workers:
                same(filter_of(worker), RECORDED.below(f"merged.{number}"))
