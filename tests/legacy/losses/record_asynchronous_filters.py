"""Records what observation filters of asynchronous algorithms of an old Ray had seen.

Usage: `python record_asynchronous_filters.py 1.13.0/asynchronous_filters.json`, with the Python of
an environment that has Ray 1.13.0 and torch. `tests/integration/test_asynchronous_filters.py`
compares. By algorithm the `config`, and after each of its `iterations`: `steps`, how many were
sampled by then; and of the filter of the trainer's process and of each worker's, `count`, `mean`
and `std`.

Each episode has 20 steps and observes their number, 0 to 20, so the mean is about 10.
"""

import json
import logging
import sys
from pathlib import Path

import gym
import numpy as np
import ray
from ray.rllib.agents.registry import get_trainer_class
from ray.tune.registry import register_env

ITERATIONS = 3
SHARED = {
    "env": "steps",
    "framework": "torch",
    "num_gpus": 0,
    "num_workers": 2,
    "observation_filter": "MeanStdFilter",
    "rollout_fragment_length": 10,
    "min_time_s_per_reporting": 1,
    "model": {"fcnet_hiddens": [4]},
}
REPLAYING = {
    "train_batch_size": 20,
    "learning_starts": 40,
    "timesteps_per_iteration": 100,
}
CASES = {
    "IMPALA": {"train_batch_size": 40},
    "APPO": {"train_batch_size": 40},
    "APEX": {**REPLAYING, "hiddens": [4]},
}


class Steps(gym.Env):
    """Observes how many steps were made."""

    observation_space = gym.spaces.Box(-100.0, 100.0, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, _=None):
        self.at = 0

    def reset(self):
        self.at = 0
        return np.zeros(1, np.float32)

    def step(self, _):
        self.at += 1
        return np.full(1, self.at, np.float32), 1.0, self.at == 20, {}


def statistics(worker):
    """What the filter of a worker has seen."""
    seen = worker.filters["default_policy"].rs
    return {"count": int(seen.n), "mean": float(seen.mean[0]), "std": float(seen.std[0])}


def record(algorithm, settings):
    config = {**SHARED, **settings}
    trainer = get_trainer_class(algorithm)(config=config)
    found = []
    for _ in range(ITERATIONS):
        steps = trainer.train()["timesteps_total"]
        local, *workers = trainer.workers.foreach_worker(statistics)
        found.append({"steps": steps, "local": local, "workers": workers})
    trainer.stop()
    return {"config": config, "iterations": found}


if __name__ == "__main__":
    ray.init(num_cpus=5, include_dashboard=False, log_to_driver=False)
    logging.disable(logging.ERROR)
    register_env("steps", Steps)
    made = {name: record(name, settings) for name, settings in CASES.items()}
    Path(sys.argv[1]).write_text(json.dumps(made, indent=1) + "\n")
