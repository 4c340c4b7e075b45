"""A Box without limits, clipped by the environment itself; actions that it gets are counted."""

import gym
import numpy as np
import ray
from facts import record
from ray import tune
from ray.rllib.agents.ppo import PPOTrainer


class Valve(gym.Env):
    observation_space = gym.spaces.Box(-np.inf, np.inf, shape=(3,))
    action_space = gym.spaces.Box(-np.inf, np.inf, shape=(2,))

    def __init__(self, config=None):
        self.types = set()

    def reset(self):
        self.n = 0
        return np.zeros(3)

    def step(self, action):
        self.types.add((str(action.dtype), action.shape))
        self.n += 1
        return np.ones(3) * self.n, float(-self.n), self.n >= 5, {}


tune.register_env("valve", lambda c: Valve(c))
ray.init()
trainer = PPOTrainer(
    env="valve",
    config={
        "num_workers": 0,
        "framework": "torch",
        "train_batch_size": 50,
        "rollout_fragment_length": 50,
        "sgd_minibatch_size": 25,
        "num_sgd_iter": 1,
        "observation_filter": "MeanStdFilter",
    },
)
result = trainer.train()
env = trainer.workers.local_worker().env
record(
    reward=result["episode_reward_mean"],
    types=env.types,
    filter=trainer.workers.local_worker().filters["default_policy"].rs.n > 0,
    steps=result["timesteps_total"],
)
trainer.stop()
