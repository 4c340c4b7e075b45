"""A multi-agent environment made by a function that returns it in gym's clothes."""

import gym
import numpy as np
import ray
from facts import record
from ray import tune
from ray.rllib.agents.dqn import DQNTrainer
from ray.rllib.env.multi_agent_env import MultiAgentEnv


class Pair(gym.Env):
    observation_space = gym.spaces.Box(0, 9, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def reset(self):
        self.n = 0
        return {0: np.zeros(2), 1: np.zeros(2)}

    def step(self, actions):
        self.n += 1
        obs = {0: np.full(2, self.n), 1: np.full(2, self.n)}
        done = self.n == 6
        return obs, {0: 1.0, 1: 2.0}, {0: done, 1: done, "__all__": done}, {0: {}, 1: {}}


class PairForAgents(Pair, MultiAgentEnv):
    def __init__(self, config):
        self.config = config


tune.register_env("pair", lambda config: PairForAgents(config))
ray.init()
trainer = DQNTrainer(
    env="pair",
    config={
        "num_workers": 0,
        "framework": "torch",
        "hiddens": [8],
        "learning_starts": 24,
        "timesteps_per_iteration": 24,
        "rollout_fragment_length": 6,
        "train_batch_size": 16,
        "buffer_size": 500,
        "multiagent": {
            "policies": {
                "a": (None, Pair.observation_space, Pair.action_space, {}),
                "b": (None, Pair.observation_space, Pair.action_space, {"gamma": 0.5}),
            },
            "policy_mapping_fn": lambda agent, *_, **__: "ab"[agent],
        },
    },
)
result = trainer.train()
record(
    reward=result["episode_reward_mean"],
    rewards=result["policy_reward_mean"],
    length=result["episode_len_mean"],
)
trainer.stop()
