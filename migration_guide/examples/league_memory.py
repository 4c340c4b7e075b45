"""Trains a policy against its earlier selves, whose weights a machine holds once.

python league_memory.py [ITERATIONS]
"""

import random
import sys

import gymnasium as gym
import numpy as np
import ray
from ray.rllib.env.multi_agent_env import MultiAgentEnv

import rllib_compat as compat


class Match(MultiAgentEnv):
    """Two players say 0 or 1; the first one wants to say the same, the second one does not."""

    observation_space = gym.spaces.Box(0, 1, (2,))
    action_space = gym.spaces.Discrete(2)

    def __init__(self, config=None):
        super().__init__()
        self.agents = self.possible_agents = ["us", "them"]

    def reset(self):
        self.rounds = 0
        return dict.fromkeys(self.agents, np.zeros(2, np.float32))

    def step(self, actions):
        self.rounds += 1
        seen = np.array([actions["us"], actions["them"]], np.float32)
        won = 1.0 if actions["us"] == actions["them"] else -1.0
        rewards = {"us": won, "them": -won}
        return dict.fromkeys(self.agents, seen), rewards, {"__all__": self.rounds == 10}, {}


def against(opponents):
    """Each episode's opponent is one of these."""
    return lambda agent_id, episode, **_: (
        "main" if agent_id == "us" else random.Random(episode.episode_id).choice(opponents)
    )


def main(iterations):
    trainer = compat.PPOTrainer(
        env=Match,
        config={
            "num_workers": 2,
            "rollout_fragment_length": 100,
            "train_batch_size": 200,
            "sgd_minibatch_size": 100,
            "num_sgd_iter": 2,
            "multiagent": {
                "policies": {"main", "self-0"},
                "policy_mapping_fn": against(["self-0"]),
                "policies_to_train": ["main"],  # all others are frozen, and shared
            },
        },
    )
    opponents = ["self-0"]
    for iteration in range(1, iterations + 1):
        result = trainer.train()
        print(iteration, "against", *opponents, result["policy_reward_mean"])
        opponents.append(f"self-{iteration}")
        trainer.add_policy(
            opponents[-1],
            policy=trainer.get_policy("main"),
            policy_mapping_fn=against(list(opponents)),
        )
    trainer.stop()


if __name__ == "__main__":
    ray.init(num_cpus=3, include_dashboard=False)
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
