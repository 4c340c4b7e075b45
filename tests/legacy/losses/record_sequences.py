"""Records which configs of R2D2 and RNNSAC an old Ray trained, and of which it died.

Usage: `python record_sequences.py OUT.json`, with the Python of an environment that has Ray 1.13.0
and torch. `tests/unit/algorithms/test_sequences.py` compares. By case: `error`, what the Ray said,
or nothing; and where there are workers, `epsilons`, how probably each acts at random.
"""

import json
import logging
import re
import sys
from pathlib import Path

import gym
import numpy as np
import ray
from ray.rllib.agents.registry import get_trainer_class
from ray.rllib.models import ModelCatalog
from ray.tune.registry import register_env
from remembering import Remembering
from sequences import CASES


class World(gym.Env):
    """Random observations; episodes have 11 steps."""

    observation_space = gym.spaces.Box(-1.0, 1.0, (4,), np.float32)
    action_space = gym.spaces.Discrete(3)

    def __init__(self, _=None):
        self.steps = 0

    def reset(self):
        self.steps = 0
        return self.observation_space.sample()

    def step(self, action):
        self.steps += 1
        return self.observation_space.sample(), float(action == 1), self.steps == 11, {}


def record(algorithm, config):
    trainer = get_trainer_class(algorithm)(config={**config, "env": "world"})
    for _ in range(2):
        trainer.train()
    found = {}
    if config["num_workers"]:
        found["epsilons"] = trainer.workers.foreach_worker(
            lambda worker: float(worker.get_policy().exploration.get_state()["cur_epsilon"])
        )[1:]
    trainer.stop()
    return found


def main(out):
    ray.init(num_cpus=3, include_dashboard=False, log_to_driver=False)
    logging.disable(logging.ERROR)
    register_env("world", World)
    ModelCatalog.register_custom_model("remembering", Remembering)
    found = {}
    for name, (algorithm, config) in CASES.items():
        try:
            found[name] = record(algorithm, config)
        except Exception as error:
            said = re.sub(r"/\S*/|0x\w+", "", str(error)).strip().splitlines()
            found[name] = {"error": ": ".join([type(error).__name__, *said[-1:]])[:160]}
        print(name, found[name], flush=True)
    Path(out).write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
