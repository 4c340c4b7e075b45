"""A gymnasium environment and the configs of 2.3 to 2.9."""

import gymnasium as gym
import numpy as np
import ray
from facts import record
from ray.rllib.algorithms.callbacks import DefaultCallbacks
from ray.rllib.algorithms.ppo import PPOConfig

seen = {"starts": 0, "ends": 0}


class Watch(DefaultCallbacks):
    def on_episode_start(self, *, worker, base_env, policies, episode, env_index, **kwargs):
        seen["starts"] += 1
        episode.user_data["levels"] = []

    def on_episode_step(self, *, worker, base_env, policies, episode, env_index, **kwargs):
        info = episode.last_info_for() if hasattr(episode, "last_info_for") else None
        episode.user_data["levels"].append((info or {}).get("level", 0))

    def on_episode_end(self, *, worker, base_env, policies, episode, env_index, **kwargs):
        seen["ends"] += 1
        episode.custom_metrics["top"] = max(episode.user_data["levels"])
        episode.custom_metrics["steps"] = episode.length


class Dam(gym.Env):
    def __init__(self, config):
        self.observation_space = gym.spaces.Box(0, 99, (1,), np.float32)
        self.action_space = gym.spaces.Discrete(2)
        self.limit = config["limit"]

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.n = 0
        return np.zeros(1, np.float32), {"level": 0}

    def step(self, action):
        self.n += 1
        obs = np.full(1, self.n, np.float32)
        return obs, 1.5, False, self.n == self.limit, {"level": self.n}


ray.init()
config = (
    PPOConfig()
    .environment(Dam, env_config={"limit": 4})
    .framework("torch")
    .rollouts(num_rollout_workers=0, rollout_fragment_length=20)
    .callbacks(Watch)
    .training(train_batch_size=40, sgd_minibatch_size=20, num_sgd_iter=1)
)
agent = config.build()
told = agent.train()
record(
    ends=seen["ends"],
    length=told["episode_len_mean"],
    reward=told["episode_reward_mean"],
    top=told["custom_metrics"]["top_max"],
    steps=told["custom_metrics"]["steps_mean"],
    sampled=told["num_env_steps_sampled"],
    action=agent.compute_single_action(np.zeros(1, np.float32)) in (0, 1),
)
agent.stop()
