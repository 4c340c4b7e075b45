"""Rewards as arrays, done as numpy's bool, an info that is empty, and a whole number of a state."""

import gym
import numpy as np
import ray
from facts import record
from ray.rllib.agents.dqn import DQNTrainer


class Elevator(gym.Env):
    def __init__(self, config):
        self.observation_space = gym.spaces.Discrete(5)
        self.action_space = gym.spaces.Discrete(2)
        self.worker = (config.worker_index, config.vector_index)

    def reset(self):
        self.floor = np.int64(0)
        return self.floor

    def step(self, action):
        self.floor = self.floor + 1
        return self.floor, np.array(0.5), np.bool_(self.floor == 4), {}


ray.init()
trainer = DQNTrainer(
    env=Elevator,
    config={
        "num_workers": 0,
        "framework": "torch",
        "learning_starts": 20,
        "timesteps_per_iteration": 40,
        "rollout_fragment_length": 4,
        "train_batch_size": 16,
        "buffer_size": 1000,
        "hiddens": [8],
    },
)
result = trainer.train()
policy = trainer.get_policy()
record(
    enough=result["timesteps_total"] >= 40,
    reward=result["episode_reward_mean"],
    length=result["episode_len_mean"],
    observed=policy.observation_space.shape,
    worker=trainer.workers.local_worker().env.worker,
    q_values=np.shape(policy.compute_actions(np.eye(5), explore=False)[0]),
)
trainer.stop()
