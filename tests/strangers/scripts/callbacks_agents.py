"""Metrics of each agent: rewards, actions and infos by agent."""

import gym
import numpy as np
import ray
from facts import record
from ray.rllib.agents.callbacks import DefaultCallbacks
from ray.rllib.agents.ppo import PPOTrainer
from ray.rllib.env.multi_agent_env import MultiAgentEnv
from ray.tune.registry import register_env

found = {}


class Grid(MultiAgentEnv):
    def __init__(self, config):
        self.n = 0

    def reset(self):
        self.n = 0
        return {"bus": np.zeros(1), "line": np.zeros(1)}

    def step(self, actions):
        self.n += 1
        done = self.n == 3
        return (
            {"bus": np.array([self.n]), "line": np.array([2 * self.n])},
            {"bus": 1.0, "line": -1.0 * self.n},
            {"bus": done, "line": done, "__all__": done},
            {"bus": {"load": self.n}, "line": {"load": 0}},
        )


class Loads(DefaultCallbacks):
    def on_episode_step(self, *, worker, base_env, episode, env_index, **kwargs):
        loads = episode.user_data.setdefault("loads", [])
        loads.append(episode.last_info_for("bus")["load"])

    def on_episode_end(self, *, worker, base_env, policies, episode, env_index, **kwargs):
        episode.custom_metrics["load"] = max(episode.user_data["loads"])
        for (agent, policy), reward in episode.agent_rewards.items():
            episode.custom_metrics["%s/%s" % (agent, policy)] = reward
        found["line"] = float(episode.last_raw_obs_for("line")[0])
        found["policy"] = episode.policy_for("line")
        found["agents"] = sorted(episode.get_agents())


register_env("grid", lambda c: Grid(c))
box, disc = gym.spaces.Box(0, 9, (1,), np.float64), gym.spaces.Discrete(2)
ray.init()
trainer = PPOTrainer(
    env="grid",
    config={
        "num_workers": 0,
        "framework": "torch",
        "callbacks": Loads,
        "rollout_fragment_length": 30,
        "train_batch_size": 30,
        "sgd_minibatch_size": 15,
        "num_sgd_iter": 1,
        "multiagent": {
            "policies": {"shared": (None, box, disc, {})},
            "policy_mapping_fn": lambda a, *_, **__: "shared",
        },
    },
)
result = trainer.train()
record(found=found, metrics=result["custom_metrics"], rewards=result["policy_reward_mean"])
trainer.stop()
