"""The environment of a project, in a module of its own."""

import gym
import numpy as np

from . import tides


class Docks(gym.Env):
    """Ships come with the tide."""

    def __init__(self, config):
        self.length = config["length"]
        self.worker = config.worker_index
        self.observation_space = gym.spaces.Box(-1, 99, (2,), np.float32)
        self.action_space = gym.spaces.Discrete(3)
        self.hour = 0

    def reset(self):
        self.hour = 0
        return self.look()

    def look(self):
        return np.array([self.hour, tides.height(self.hour)], np.float32)

    def step(self, action):
        self.hour += 1
        return self.look(), tides.height(self.hour), self.hour == self.length, {"w": self.worker}
