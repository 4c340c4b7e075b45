"""How full the replay buffer of DQN is, and whether it drops steps already."""

import gym
import numpy as np
import ray
from facts import record
from ray.rllib.agents.dqn import DQNTrainer


class Hall(gym.Env):
    def __init__(self, config):
        self.observation_space = gym.spaces.Box(0, 20, (2,), np.float32)
        self.action_space = gym.spaces.Discrete(2)

    def reset(self):
        self.n = 0
        return np.zeros(2, np.float32)

    def step(self, action):
        self.n += 1
        return np.full(2, self.n, np.float32), 1.0, self.n == 6, {}


ray.init()
trainer = DQNTrainer(
    env=Hall,
    config={
        "num_workers": 0,
        "framework": "torch",
        "hiddens": [4],
        "prioritized_replay": False,
        "learning_starts": 12,
        "buffer_size": 100,
        "train_batch_size": 16,
        "rollout_fragment_length": 4,
        "timesteps_per_iteration": 200,
        "min_iter_time_s": 0,
    },
)
trainer.train()
buffer = trainer.local_replay_buffer
stats = buffer.stats()["policy_default_policy"]
record(
    held=stats["num_entries"],
    size=len(buffer.replay_buffers["default_policy"]),
    full=stats["eviction_started"],
    policies=sorted(buffer.replay_buffers),
    drawn=stats["sampled_count"] > 0,
    bytes=stats["est_size_bytes"] > 0,
)
trainer.stop()
