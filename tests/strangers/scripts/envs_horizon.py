"""An endless environment, cut by `horizon`, with and without `soft_horizon`."""

import gym
import numpy as np
import ray
from facts import record
from ray.rllib.agents.ppo import PPOTrainer


class Pump(gym.Env):
    def __init__(self, config):
        self.observation_space = gym.spaces.Box(0, 1e6, (1,), np.float32)
        self.action_space = gym.spaces.Discrete(2)
        self.resets = 0

    def reset(self):
        self.resets += 1
        self.n = 0
        return np.array([0], np.float32)

    def step(self, action):
        self.n += 1
        return np.array([self.n], np.float32), 1.0, False, {}


ray.init()
found = {}
for soft in (False, True):
    config = {
        "num_workers": 0,
        "framework": "torch",
        "horizon": 10,
        "soft_horizon": soft,
        "train_batch_size": 60,
        "rollout_fragment_length": 60,
        "sgd_minibatch_size": 30,
        "num_sgd_iter": 1,
    }
    trainer = PPOTrainer(env=Pump, config=config)
    result = trainer.train()
    found["soft" if soft else "hard"] = [
        result["episodes_this_iter"],
        result["episode_len_mean"],
        result["episode_reward_mean"],
    ]
    trainer.stop()
record(**found)
