"""An error in an environment comes out of `train` with its own text."""

import gym
import numpy as np
import ray
from facts import record
from ray.rllib.agents.ppo import PPOTrainer


class Broken(gym.Env):
    def __init__(self, config):
        self.observation_space = gym.spaces.Box(0, 9, (1,), np.float32)
        self.action_space = gym.spaces.Discrete(2)

    def reset(self):
        self.n = 0
        return np.zeros(1, np.float32)

    def step(self, action):
        self.n += 1
        if self.n == 3:
            raise ZeroDivisionError("the valve is stuck")
        return np.zeros(1, np.float32), 1.0, False, {}


ray.init()
trainer = PPOTrainer(
    env=Broken,
    config={
        "num_workers": 0,
        "framework": "torch",
        "rollout_fragment_length": 20,
        "train_batch_size": 20,
        "sgd_minibatch_size": 10,
        "num_sgd_iter": 1,
    },
)
try:
    trainer.train()
    said = ""
except Exception as error:
    said = "%s: %s" % (type(error).__name__, error)
record(said="the valve is stuck" in said)
trainer.stop()
