"""Observation filters of asynchronous algorithms hold what all workers have seen, each step once.

`tests/legacy/losses/record_asynchronous_filters.py` recorded what those of Ray 1.13.0 held. How
many steps an iteration has depends on time, so what is compared is what holds of any number.
"""

import json
from pathlib import Path

import gymnasium
import numpy as np
import pytest

from tests.marks import TRAINERS

pytestmark = [*TRAINERS, pytest.mark.nightly, pytest.mark.usefixtures("one_ray")]

CPUS = 5
RECORDED = json.loads(Path("tests/legacy/losses/1.13.0/asynchronous_filters.json").read_text())


class Steps(gymnasium.Env):
    """The recorded environment: it observes how many steps were made."""

    observation_space = gymnasium.spaces.Box(-100.0, 100.0, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, _=None):
        self.at = 0

    def reset(self, *, seed=None, options=None):
        self.at = 0
        return np.zeros(1, np.float32), {}

    def step(self, _):
        self.at += 1
        return np.full(1, self.at, np.float32), 1.0, self.at == 20, False, {}


def statistics(worker):
    seen = worker.filters["default_policy"].rs
    mean, std = (float(np.ravel(part)[0]) for part in (seen.mean, seen.std))
    return {"count": int(seen.n), "mean": mean, "std": std}


def hold(iteration):
    """What an iteration of any length leaves: all hold the same, and nothing is counted twice."""
    local = iteration["local"]
    assert all(worker == pytest.approx(local) for worker in iteration["workers"])
    begun = iteration["steps"] / 20 + 2
    assert iteration["steps"] <= local["count"] <= 1.05 * iteration["steps"] + begun + 100
    assert local["mean"] == pytest.approx(10, abs=1.5)
    assert local["std"] == pytest.approx(6.06, abs=0.3)


@pytest.mark.parametrize("algorithm", RECORDED)
def test_filters_of_workers_are_one_after_each_iteration(algorithm, make):
    recorded = RECORDED[algorithm]
    for iteration in recorded["iterations"]:
        hold(iteration)
    config = {**recorded["config"], "env": Steps}
    trainer = make("Trainer", algorithm=algorithm, config=config, legacy_ray="1.13.0")
    for _ in recorded["iterations"]:
        steps = trainer.train()["timesteps_total"]
        local, *workers = trainer.workers.foreach_worker(statistics)
        hold({"steps": steps, "local": local, "workers": workers})
