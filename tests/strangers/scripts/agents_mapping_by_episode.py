"""Which policy an agent has is drawn anew for each episode."""

import random

import gym
import numpy as np
import ray
from facts import record
from ray.rllib.agents.callbacks import DefaultCallbacks
from ray.rllib.agents.ppo import PPOTrainer
from ray.rllib.env.multi_agent_env import MultiAgentEnv
from ray.tune.registry import register_env

seen = []


class Watch(DefaultCallbacks):
    def on_episode_end(self, *, worker, base_env, policies, episode, **kwargs):
        seen.append(tuple(sorted(episode.agent_rewards)))
        episode.custom_metrics["pairs"] = len(episode.agent_rewards)


class Room(MultiAgentEnv):
    def __init__(self, config):
        pass

    def reset(self):
        self.n = 0
        return {7: np.zeros(1)}

    def step(self, actions):
        self.n += 1
        return {7: np.ones(1)}, {7: 3.0}, {7: self.n == 2, "__all__": self.n == 2}, {7: {}}


register_env("room", lambda c: Room(c))
box, disc = gym.spaces.Box(0, 9, (1,), np.float64), gym.spaces.Discrete(2)
names = ["car%d" % i for i in range(3)]
ray.init()
trainer = PPOTrainer(
    env="room",
    config={
        "num_workers": 0,
        "framework": "torch",
        "callbacks": Watch,
        "rollout_fragment_length": 60,
        "train_batch_size": 60,
        "sgd_minibatch_size": 10,
        "num_sgd_iter": 1,
        "multiagent": {
            "policies": {name: (None, box, disc, {}) for name in names},
            "policy_mapping_fn": lambda agent_id, *_, **__: random.choice(names),
        },
    },
)
result = trainer.train()
record(
    episodes=len(seen),
    agents={agent for row in seen for agent, _ in row},
    policies={policy for row in seen for _, policy in row},
    pairs=result["custom_metrics"]["pairs_mean"],
    rewards=set(result["policy_reward_mean"].values()),
)
trainer.stop()
