"""A scheduler that stops bad trials, and columns for a reporter."""

import gym
import numpy as np
import ray
from facts import record
from ray import tune
from ray.tune import CLIReporter
from ray.tune.schedulers import ASHAScheduler


class Pit(gym.Env):
    def __init__(self, config):
        self.observation_space = gym.spaces.Box(0, 9, (1,), np.float32)
        self.action_space = gym.spaces.Discrete(2)
        self.pay = config["pay"]

    def reset(self):
        self.n = 0
        return np.zeros(1, np.float32)

    def step(self, action):
        self.n += 1
        return np.ones(1, np.float32), self.pay, self.n == 5, {}


ray.init(num_cpus=4)
tune.register_env("pit", lambda config: Pit(config))
reporter = CLIReporter(metric_columns=["episode_reward_mean", "training_iteration"])
analysis = tune.run(
    "PG",
    scheduler=ASHAScheduler(
        metric="episode_reward_mean", mode="max", max_t=3, grace_period=1, reduction_factor=2
    ),
    progress_reporter=reporter,
    verbose=1,
    config={
        "env": "pit",
        "num_workers": 0,
        "framework": "torch",
        "env_config": {"pay": tune.grid_search([3.0, 1.0])},
        "rollout_fragment_length": 20,
        "train_batch_size": 20,
    },
)
best = analysis.get_best_trial("episode_reward_mean", "max")
record(
    best=best.config["env_config"]["pay"],
    iterations=best.last_result["training_iteration"],
    statuses=[trial.status for trial in analysis.trials],
)
