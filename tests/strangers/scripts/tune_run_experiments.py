"""`run_experiments` with a dict of experiments, as until 0.8."""

import ray
from facts import record
from ray.tune import run_experiments
from ray.tune.registry import register_env
import gym
import numpy as np


class Pit(gym.Env):
    def __init__(self, config):
        self.observation_space = gym.spaces.Box(0, 9, (1,), np.float32)
        self.action_space = gym.spaces.Discrete(2)

    def reset(self):
        self.n = 0
        return np.zeros(1, np.float32)

    def step(self, action):
        self.n += 1
        return np.ones(1, np.float32), 1.0, self.n == 5, {}


ray.init()
register_env("pit", lambda config: Pit(config))
trials = run_experiments(
    {
        "first": {
            "run": "PG",
            "env": "pit",
            "stop": {"timesteps_total": 40},
            "checkpoint_freq": 1,
            "config": {
                "num_workers": 0,
                "use_pytorch": True,
                "rollout_fragment_length": 20,
                "train_batch_size": 20,
            },
        },
    }
)
record(
    trials=len(trials),
    status=[trial.status for trial in trials],
    steps=[trial.last_result["timesteps_total"] for trial in trials],
    reward=[trial.last_result["episode_reward_mean"] for trial in trials],
    env=[trial.config["env"] for trial in trials],
)
