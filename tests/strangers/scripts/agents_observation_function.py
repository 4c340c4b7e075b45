"""Observations of all agents for each, by `observation_fn`."""

import gym
import numpy as np
import ray
from facts import record
from ray.rllib.agents.ppo import PPOTrainer
from ray.rllib.env.multi_agent_env import MultiAgentEnv
from ray.tune.registry import register_env

calls = []


class Room(MultiAgentEnv):
    def __init__(self, config):
        pass

    def reset(self):
        self.n = 0
        return {0: np.zeros(1), 1: np.zeros(1)}

    def step(self, actions):
        self.n += 1
        done = self.n == 5
        obs = {0: np.full(1, self.n), 1: np.full(1, 2.0 * self.n)}
        return obs, {0: 1.0, 1: 1.0}, {0: done, 1: done, "__all__": done}, {}


def central(agent_obs, **kw):
    calls.append(sorted(agent_obs))
    return {
        0: {"own": agent_obs[0], "other": agent_obs[1]},
        1: {"own": agent_obs[1], "other": agent_obs[0]},
    }


register_env("room", lambda c: Room(c))
box = gym.spaces.Box(0, 20, (1,), np.float64)
both = gym.spaces.Dict({"own": box, "other": box})
ray.init()
trainer = PPOTrainer(
    env="room",
    config={
        "num_workers": 0,
        "framework": "torch",
        "batch_mode": "complete_episodes",
        "rollout_fragment_length": 40,
        "train_batch_size": 40,
        "sgd_minibatch_size": 20,
        "num_sgd_iter": 1,
        "multiagent": {
            "policies": {"p": (None, both, gym.spaces.Discrete(2), {})},
            "policy_mapping_fn": lambda agent, *_, **__: "p",
            "observation_fn": central,
        },
    },
)
result = trainer.train()
record(
    agents=calls[0],
    enough=len(calls) >= 40,
    flat=trainer.get_policy("p").observation_space.shape,
    reward=result["episode_reward_mean"],
)
trainer.stop()
