"""A function with a reporter: phases of environments, and checkpoints into folders of its own."""

import os
import tempfile
from operator import methodcaller

import gym
import numpy as np
import ray
from facts import record
from ray import tune
from ray.rllib.agents.ppo import PPOTrainer
from ray.tune.registry import register_env

FOLDER = tempfile.mkdtemp()


class Shop(gym.Env):
    def __init__(self, config):
        self.observation_space = gym.spaces.Box(0, 9, (2,), np.float32)
        self.action_space = gym.spaces.Discrete(2)
        self.phase = -1

    def set_phase(self, phase):
        self.phase = phase

    def reset(self):
        self.n = 0
        return np.zeros(2, np.float32)

    def step(self, action):
        self.n += 1
        return np.zeros(2, np.float32), 1.0 + self.phase, self.n == 4, {}


def train(config, reporter):
    agent = PPOTrainer(config=config, env="shop")

    def begin(phase):
        change = methodcaller("set_phase", phase)
        agent.workers.foreach_worker(lambda worker: worker.foreach_env(change))

    begin(0)
    for i in range(3):
        result = agent.train()
        reporter(**result)
        if i % 2 == 0:
            agent.save_checkpoint(os.path.join(FOLDER))
        if result["episode_reward_mean"] < 8:
            begin(1)
    agent.stop()


ray.init()
register_env("shop", lambda config: Shop(config))
trials = tune.run(
    train,
    config={
        "env": "shop",
        "framework": "torch",
        "gamma": tune.grid_search([0.9, 0.99]),
        "num_workers": 0,
        "num_sgd_iter": 1,
        **dict.fromkeys(("train_batch_size", "rollout_fragment_length", "sgd_minibatch_size"), 20),
    },
    verbose=0,
)
record(
    rewards=[t.last_result["episode_reward_mean"] for t in trials.trials],
    iterations=[t.last_result["training_iteration"] for t in trials.trials],
    saved=len(os.listdir(FOLDER)) > 0,
    columns=sorted(c for c in trials.dataframe().columns if c.startswith("episode")),
)
