"""A dict of functions, user data and custom metrics."""

import gym
import numpy as np
import ray
from facts import record
from ray.rllib.agents.ppo import PPOTrainer

calls = {}


def count(name):
    calls[name] = calls.get(name, 0) + 1


class Line(gym.Env):
    def __init__(self, config):
        self.observation_space = gym.spaces.Box(0, 50, (3,), np.float32)
        self.action_space = gym.spaces.Discrete(2)

    def reset(self):
        self.n = 0
        return np.zeros(3, np.float32)

    def step(self, action):
        self.n += 1
        return np.full(3, self.n, np.float32), 1.0, self.n == 5, {"heat": 10 * self.n}


def on_episode_start(info):
    count("start")
    info["episode"].user_data["heat"] = []


def on_episode_step(info):
    count("step")
    episode = info["episode"]
    last = episode.last_info_for()
    if last:
        episode.user_data["heat"].append(last["heat"])
        episode.user_data["seen"] = episode.last_observation_for()[2]


def on_episode_end(info):
    count("end")
    episode = info["episode"]
    episode.custom_metrics["heat"] = np.mean(episode.user_data["heat"])
    episode.custom_metrics["seen"] = episode.user_data["seen"]
    episode.custom_metrics["length"] = episode.length


def on_sample_end(info):
    count("sample")
    calls["samples"] = calls.get("samples", 0) + info["samples"].count


def on_train_result(info):
    count("result")
    info["result"]["done_by"] = type(info["trainer"]).__name__[:3]


def on_postprocess_traj(info):
    count("postprocess")
    calls["agent"] = str(info["agent_id"])
    calls["batch"] = info["post_batch"].count


ray.init()
trainer = PPOTrainer(
    env=Line,
    config={
        "num_workers": 0,
        "use_pytorch": True,
        "rollout_fragment_length": 40,
        "train_batch_size": 40,
        "sgd_minibatch_size": 20,
        "num_sgd_iter": 1,
        "callbacks": {
            function.__name__: function
            for function in (
                *(on_train_result, on_postprocess_traj, on_sample_end),
                *(on_episode_end, on_episode_step, on_episode_start),
            )
        },
    },
)
result = trainer.train()
record(calls=calls, metrics=result["custom_metrics"], done_by=result["done_by"])
trainer.stop()
