"""Population-based training, with values that leave their range and an explore function."""

import random

import gym
import numpy as np
import ray
from facts import record
from ray import tune
from ray.tune.schedulers import PopulationBasedTraining


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


def explore(config):
    least = {"train_batch_size": 2 * config["sgd_minibatch_size"], "num_sgd_iter": 1}
    config.update({key: max(config[key], least[key]) for key in least})
    return config


ray.init(num_cpus=4)
tune.register_env("pit", lambda config: Pit(config))
pbt = PopulationBasedTraining(
    custom_explore_fn=explore,
    hyperparam_mutations={
        "sgd_minibatch_size": lambda: random.randint(8, 20),
        "lr": [1e-3, 2e-4],
        "lambda": lambda: random.uniform(0.85, 1.0),
        "train_batch_size": lambda: random.randint(40, 60),
        "clip_param": lambda: random.uniform(0.05, 0.4),
        "num_sgd_iter": lambda: random.choice([1, 2]),
    },
    perturbation_interval=1,
    mode="max",
    metric="episode_reward_mean",
    time_attr="training_iteration",
)
analysis = tune.run(
    "PPO",
    name="population",
    scheduler=pbt,
    num_samples=2,
    stop={"training_iteration": 3},
    verbose=0,
    config={
        "env": "pit",
        "num_workers": 0,
        "sgd_minibatch_size": tune.choice([10, 16]),
        "framework": "torch",
        "train_batch_size": tune.choice([40, 56]),
        "lambda": 0.95,
        "rollout_fragment_length": 20,
        "num_sgd_iter": 2,
        "lr": 2e-4,
        "clip_param": 0.25,
    },
)
record(
    statuses=[trial.status for trial in analysis.trials],
    iterations=[trial.last_result["training_iteration"] for trial in analysis.trials],
    reward=[trial.last_result["episode_reward_mean"] for trial in analysis.trials],
)
