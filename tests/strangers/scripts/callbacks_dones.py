"""Steps made final by callbacks of DQN, which learns no value after them."""

import gym
import numpy as np
import ray
from facts import record
from ray.rllib.agents.callbacks import DefaultCallbacks
from ray.rllib.agents.dqn import DQNTrainer


class Hops(gym.Env):
    def __init__(self, config):
        self.observation_space = gym.spaces.Box(0, 20, (2,), np.float32)
        self.action_space = gym.spaces.Discrete(2)

    def reset(self):
        self.n = 0
        return np.zeros(2, np.float32)

    def step(self, action):
        self.n += 1
        return np.full(2, self.n, np.float32), 1.0, self.n == 6, {}


class Final(DefaultCallbacks):
    def on_postprocess_trajectory(self, *, postprocessed_batch, **kwargs):
        postprocessed_batch["dones"] = postprocessed_batch["new_obs"][:, 0] % 2 == 0


ray.init()
trainer = DQNTrainer(
    env=Hops,
    config={
        "num_workers": 0,
        "framework": "torch",
        "callbacks": Final,
        "hiddens": [4],
        "learning_starts": 12,
        "train_batch_size": 16,
        "timesteps_per_iteration": 24,
    },
)
record(steps=trainer.train()["timesteps_total"])
trainer.stop()
