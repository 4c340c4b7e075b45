"""QMIX with a group of two agents."""

import numpy as np
import ray
from facts import record
from gym.spaces import Box, Discrete, Tuple
from ray.rllib.agents.qmix import QMixTrainer
from ray.rllib.env.multi_agent_env import MultiAgentEnv
from ray.tune.registry import register_env


class Lift(MultiAgentEnv):
    def __init__(self, config):
        super().__init__()
        self.n = 0

    def reset(self):
        self.n = 0
        return {0: np.zeros(2), 1: np.zeros(2)}

    def step(self, actions):
        self.n += 1
        obs = {i: np.full(2, self.n, float) for i in (0, 1)}
        done = self.n == 4
        return obs, {0: 0.5, 1: 0.5}, {0: done, 1: done, "__all__": done}, {0: {}, 1: {}}


spaces = Tuple([Box(0, 9, (2,), np.float64)] * 2), Tuple([Discrete(3)] * 2)
register_env(
    "lift",
    lambda config: Lift(config).with_agent_groups(
        {"both": [0, 1]}, obs_space=spaces[0], act_space=spaces[1]
    ),
)
ray.init()
trainer = QMixTrainer(
    env="lift",
    config={
        "num_workers": 0,
        "mixer": "qmix",
        "rollout_fragment_length": 4,
        "train_batch_size": 16,
        "timesteps_per_iteration": 32,
        "learning_starts": 0,
        "buffer_size": 200,
    },
)
result = trainer.train()
record(reward=result["episode_reward_mean"], length=result["episode_len_mean"])
trainer.stop()
