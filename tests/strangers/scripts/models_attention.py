"""Attention in the days of 1.x, in a loop of one's own with its memory."""

import gym
import numpy as np
import ray
from facts import record
from ray.rllib.agents.ppo import PPOTrainer


class Echo(gym.Env):
    def __init__(self, config=None):
        self.observation_space = gym.spaces.Box(0, 9, (2,), np.float32)
        self.action_space = gym.spaces.Discrete(3)

    def reset(self):
        self.n = 0
        return np.zeros(2, np.float32)

    def step(self, action):
        self.n += 1
        return np.full(2, self.n, np.float32), 1.0, self.n == 6, {}


ray.init()
config = {
    "num_workers": 0,
    "framework": "torch",
    "rollout_fragment_length": 30,
    "train_batch_size": 60,
    "sgd_minibatch_size": 30,
    "num_sgd_iter": 1,
    "model": {
        "use_attention": True,
        "max_seq_len": 5,
        "attention_num_transformer_units": 1,
        "attention_dim": 8,
        "attention_memory_inference": 4,
        "attention_memory_training": 4,
        "attention_num_heads": 1,
        "attention_head_dim": 8,
        "attention_position_wise_mlp_dim": 8,
    },
}
trainer = PPOTrainer(env=Echo, config=config)
result = trainer.train()
env = Echo()
units, dim, memory = 1, 8, 4
memories = [np.zeros((memory, dim), np.float32)] * units
seen, over, steps = env.reset(), False, 0
while not over:
    chosen, newest, _ = trainer.compute_single_action(seen, memories)
    memories = [np.vstack((kept[1:], one[None])) for kept, one in zip(memories, newest)]
    seen, _, over, _ = env.step(chosen)
    steps += 1
record(steps=steps, out=[np.shape(s) for s in newest], reward=result["episode_reward_mean"])
trainer.stop()
