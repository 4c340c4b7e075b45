"""Policies as a set of names, which have the environment's spaces; steps counted by agent."""

import gym
import numpy as np
import ray
from facts import record
from ray.rllib.agents.ppo import PPOTrainer
from ray.rllib.env.multi_agent_env import MultiAgentEnv
from ray.tune.registry import register_env


class Pair(MultiAgentEnv):
    def __init__(self, config):
        super().__init__()
        self._agent_ids = {"l", "r"}
        self.observation_space = gym.spaces.Box(0, 9, (1,), np.float64)
        self.action_space = gym.spaces.Discrete(2)

    def reset(self):
        self.n = 0
        return {"l": np.zeros(1), "r": np.zeros(1)}

    def step(self, actions):
        self.n += 1
        done = self.n == 5
        obs = {"l": np.ones(1), "r": np.ones(1)}
        return obs, {"l": 1.0, "r": 2.0}, {"__all__": done}, {}


register_env("pair", lambda c: Pair(c))
ray.init()
trainer = PPOTrainer(
    env="pair",
    config={
        "num_workers": 0,
        "framework": "torch",
        "rollout_fragment_length": 20,
        "train_batch_size": 40,
        "sgd_minibatch_size": 20,
        "num_sgd_iter": 1,
        "multiagent": {
            "policies": {"l", "r"},
            "policy_mapping_fn": lambda agent, episode, **kw: agent,
            "count_steps_by": "agent_steps",
        },
    },
)
result = trainer.train()
record(
    policies=sorted(trainer.workers.local_worker().policy_map.keys()),
    rewards=result["policy_reward_mean"],
    agent_steps=result["info"]["num_agent_steps_sampled"],
    env_steps=result["info"]["num_env_steps_sampled"],
)
trainer.stop()
