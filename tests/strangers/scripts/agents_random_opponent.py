"""A policy of one's own (rules, no learning) against one that learns."""

import random

import gym
import numpy as np
import ray
from facts import record
from ray.rllib.agents.pg import PGTrainer
from ray.rllib.env.multi_agent_env import MultiAgentEnv
from ray.rllib.policy.policy import Policy
from ray.tune.registry import register_env


class AlwaysOne(Policy):
    def compute_actions(
        self,
        obs_batch,
        state_batches=None,
        prev_action_batch=None,
        prev_reward_batch=None,
        info_batch=None,
        episodes=None,
        **kwargs,
    ):
        return np.array([1 for _ in obs_batch]), [], {}

    def learn_on_batch(self, samples):
        raise AssertionError("it is not trained")

    def get_weights(self):
        return {}

    def set_weights(self, weights):
        pass


class Duel(MultiAgentEnv):
    def __init__(self, config):
        self.ones = 0

    def reset(self):
        self.n = 0
        return {"me": np.zeros(1), "you": np.zeros(1)}

    def step(self, actions):
        self.n += 1
        assert actions["you"] == 1
        done = self.n == 5
        return (
            {"me": np.zeros(1), "you": np.zeros(1)},
            {"me": 0.0, "you": 1.0},
            {"__all__": done},
            {},
        )


register_env("duel", lambda c: Duel(c))
box, disc = gym.spaces.Box(0, 1, (1,), np.float64), gym.spaces.Discrete(2)
ray.init()
trainer = PGTrainer(
    env="duel",
    config={
        "num_workers": 0,
        "framework": "torch",
        "rollout_fragment_length": 50,
        "train_batch_size": 50,
        "multiagent": {
            "policies": {"learned": (None, box, disc, {}), "fixed": (AlwaysOne, box, disc, {})},
            "policies_to_train": ["learned"],
            "policy_mapping_fn": lambda a, *_, **__: "learned" if a == "me" else "fixed",
        },
    },
)
random.seed(0)
result = trainer.train()
record(
    rewards=result["policy_reward_mean"],
    episodes=result["episodes_total"],
    learned=sorted(result["info"]["learner"]),
    fixed=trainer.compute_action(np.zeros(1), policy_id="fixed"),
    kind=type(trainer.get_policy("fixed")).__name__,
)
trainer.stop()
