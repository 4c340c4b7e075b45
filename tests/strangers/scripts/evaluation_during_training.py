"""Evaluation between iterations, with another environment and without exploration."""

import gym
import numpy as np
import ray
from facts import record
from ray.rllib.agents.ppo import PPOTrainer


class Quiz(gym.Env):
    def __init__(self, config):
        self.pay = config.get("pay", 1.0)
        self.observation_space = gym.spaces.Box(0, 9, (1,), np.float32)
        self.action_space = gym.spaces.Discrete(2)

    def reset(self):
        self.n = 0
        return np.zeros(1, np.float32)

    def step(self, action):
        self.n += 1
        return np.ones(1, np.float32), self.pay, self.n == 5, {}


ray.init()
trainer = PPOTrainer(
    env=Quiz,
    config={
        "num_workers": 0,
        "framework": "torch",
        "rollout_fragment_length": 20,
        "train_batch_size": 20,
        "sgd_minibatch_size": 10,
        "num_sgd_iter": 1,
        "evaluation_interval": 2,
        "evaluation_num_episodes": 3,
        "evaluation_config": {"env_config": {"pay": 7.0}, "explore": False},
    },
)
results = [trainer.train() for _ in range(3)]
found = ["evaluation" in result for result in results]
own = trainer._evaluate() if hasattr(trainer, "_evaluate") else trainer.evaluate()
second = results[1]["evaluation"]
record(
    found=found[:2],
    training=results[1]["episode_reward_mean"],
    evaluation=second["episode_reward_mean"],
    episodes=second["episodes_this_iter"],
    length=second["episode_len_mean"],
    own=sorted(own),
    own_reward=own["evaluation"]["episode_reward_mean"],
)
trainer.stop()
