"""An exploration class of one's own, by its class in `exploration_config`."""

import gym
import numpy as np
import ray
from facts import record
from ray.rllib.agents.dqn import DQNTrainer
from ray.rllib.utils.exploration.epsilon_greedy import EpsilonGreedy

steps = []


class Noted(EpsilonGreedy):
    def get_exploration_action(self, *, action_distribution, timestep, explore=True):
        steps.append((int(timestep) if timestep is not None else -1, bool(explore)))
        return super().get_exploration_action(
            action_distribution=action_distribution, timestep=timestep, explore=explore
        )


class Lamp(gym.Env):
    def __init__(self, config):
        self.observation_space = gym.spaces.Box(0, 9, (2,), np.float32)
        self.action_space = gym.spaces.Discrete(3)

    def reset(self):
        self.n = 0
        return np.zeros(2, np.float32)

    def step(self, action):
        self.n += 1
        return np.full(2, self.n, np.float32), 1.0, self.n == 5, {}


ray.init()
trainer = DQNTrainer(
    env=Lamp,
    config={
        "num_workers": 0,
        "framework": "torch",
        "hiddens": [4],
        "learning_starts": 10,
        "buffer_size": 100,
        "train_batch_size": 8,
        "timesteps_per_iteration": 20,
        "exploration_config": {"type": Noted, "epsilon_timesteps": 50},
    },
)
result = trainer.train()
before = len(steps)
trainer.compute_action(np.zeros(2, np.float32), explore=False)
record(called=before >= 20, explored=all(e for _, e in steps[1:before]), last=steps[-1][1])
trainer.stop()
