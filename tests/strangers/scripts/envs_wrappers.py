"""gym's wrappers around an environment of one's own."""

import gym
import numpy as np
import ray
from facts import record
from gym.wrappers import TimeLimit, TransformReward
from ray.rllib.agents.ppo import PPOTrainer
from ray.tune.registry import register_env


class Oven(gym.Env):
    def __init__(self):
        self.observation_space = gym.spaces.Box(0, 500, (2,), np.float64)
        self.action_space = gym.spaces.Discrete(2)

    def reset(self):
        return np.array([20.0, 20.0])

    def step(self, action):
        return np.array([100.0, 300.0]), 4.0, False, {}


class Scaled(gym.ObservationWrapper):
    def __init__(self, env):
        super(Scaled, self).__init__(env)
        self.observation_space = gym.spaces.Box(0, 1, (2,), np.float32)

    def observation(self, observation):
        return (observation / 500).astype(np.float32)


class Swapped(gym.ActionWrapper):
    def action(self, action):
        return 1 - action

    def reverse_action(self, action):
        return 1 - action


def make(config):
    env = TransformReward(Swapped(Scaled(Oven())), lambda r: r / 2)
    return TimeLimit(env, max_episode_steps=config["limit"])


register_env("oven", make)
ray.init()
trainer = PPOTrainer(
    env="oven",
    config={
        "num_workers": 0,
        "framework": "torch",
        "env_config": {"limit": 10},
        "train_batch_size": 40,
        "rollout_fragment_length": 40,
        "sgd_minibatch_size": 20,
        "num_sgd_iter": 1,
    },
)
result = trainer.train()
env = make({"limit": 3})
first = env.reset()
trail = [env.step(0)[:3] for _ in range(3)]
record(
    reward=result["episode_reward_mean"],
    length=result["episode_len_mean"],
    first=first,
    rewards=[row[1] for row in trail],
    dones=[bool(row[2]) for row in trail],
    reversed=env.env.env.reverse_action(1),
    unwrapped=type(env.unwrapped).__name__,
)
trainer.stop()
