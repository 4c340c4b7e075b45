"""A vector environment of one's own."""

import gym
import numpy as np
import ray
from facts import record
from ray.rllib.agents.ppo import PPOTrainer
from ray.rllib.env import VectorEnv
from ray.tune.registry import register_env


class Lanes(VectorEnv):
    def __init__(self, lanes, length):
        super().__init__(
            observation_space=gym.spaces.Box(0, 100, (1,), np.float32),
            action_space=gym.spaces.Discrete(2),
            num_envs=lanes,
        )
        self.length, self.places, self.calls = length, [0] * lanes, {"reset_at": 0, "step": 0}

    def vector_reset(self):
        self.places = [0] * self.num_envs
        return [np.zeros(1, np.float32) for _ in self.places]

    def reset_at(self, index):
        self.calls["reset_at"] += 1
        self.places[index] = 0
        return np.zeros(1, np.float32)

    def vector_step(self, actions):
        self.calls["step"] += 1
        assert len(actions) == self.num_envs
        self.places = [place + 1 for place in self.places]
        seen = [np.array([place], np.float32) for place in self.places]
        return seen, [1.0] * len(seen), [p >= self.length for p in self.places], [{} for _ in seen]

    def get_unwrapped(self):
        return []

    def get_sub_environments(self):
        return []


register_env("lanes", lambda config: Lanes(config["lanes"], 5))
ray.init()
trainer = PPOTrainer(
    env="lanes",
    config={
        "num_workers": 0,
        "num_envs_per_worker": 3,
        "framework": "torch",
        "env_config": {"lanes": 3},
        "rollout_fragment_length": 20,
        "train_batch_size": 60,
        "sgd_minibatch_size": 30,
        "num_sgd_iter": 1,
    },
)
result = trainer.train()
record(
    episodes=result["episodes_total"],
    length=result["episode_len_mean"],
    steps=result["timesteps_total"],
    reward=result["episode_reward_mean"],
)
trainer.stop()
