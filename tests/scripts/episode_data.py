"""A script as people wrote them for Ray 1.x: an environment's own data in files of the trial.

The callbacks and the logger are those of https://discuss.ray.io/t/log-or-record-custom-env-data-via-rllib,
word for word; the environment and the call are the parts that the thread leaves out.
"""

import json
import os
import os.path as osp
import sys
from collections import defaultdict

import gym
import numpy as np
import ray
from ray import tune
from ray.rllib.agents.callbacks import DefaultCallbacks
from ray.tune.logger import LoggerCallback
from ray.tune.result import TIMESTEPS_TOTAL, TRAINING_ITERATION


class Plant(gym.Env):
    def __init__(self, config):
        self.observation_space = gym.spaces.Box(0, 1, (2,), dtype=np.float32)
        self.action_space = gym.spaces.Discrete(2)
        self.own = osp.join(config["own"], f"{config.worker_index}-{id(self)}")
        self.episodes = 0

    def reset(self):
        self.steps = 0
        self.episodes += 1
        self.places = []
        return np.zeros(2, np.float)

    def step(self, action):
        self.steps += 1
        self.places.append([self.episodes, self.steps])
        info = {
            "media": {"place": self.places[-1]},
            "data": {"running": {"speed": 2.0}, "final": {"articles": self.steps}},
        }
        done = self.steps == 10
        if done:  # what the test compares with
            with open(self.own, "a") as file:
                file.write(json.dumps({"place": self.places}) + "\n")
        return np.zeros(2, np.float), 1.0, done, info


class CustomCallbacks(DefaultCallbacks):
    def on_episode_start(self, *, worker, base_env, policies, episode, env_index, **kwargs):
        episode.media["episode_data"] = defaultdict(list)
        episode.user_data = {"final": {}, "running": defaultdict(list)}

    def on_episode_step(self, *, worker, base_env, episode, env_index, **kwargs):
        # Running metrics -> keep all values
        # Final metrics -> only keep the current value
        for data_type, data_subset in episode.user_data.items():
            data = episode.last_info_for().get("data", {}).get(data_type)
            for name, value in data.items():
                if data_type == "running":
                    data_subset[name].append(value)
                else:
                    data_subset[name] = value

        # Arbitrary episode media
        media = episode.last_info_for().get("media", {})
        for name, value in media.items():
            episode.media["episode_data"][name].append(value)

    def on_episode_end(self, *, worker, base_env, policies, episode, env_index, **kwargs):
        for name, value in episode.media["episode_data"].items():
            episode.media["episode_data"][name] = np.array(value).tolist()

        for data_type, data_subset in episode.user_data.items():
            for name, value in data_subset.items():
                if data_type == "running":
                    episode.custom_metrics[name + "_avg"] = np.mean(value)
                    episode.custom_metrics[name + "_sum"] = np.sum(value)
                    episode.hist_data[name] = value
                else:
                    episode.custom_metrics[name] = value
                    episode.hist_data[name] = [value]


class DataLoggerCallback(LoggerCallback):
    def __init__(self):
        self._trial_continue = {}
        self._trial_local_dir = {}

    def log_trial_start(self, trial):
        trial.init_logdir()
        self._trial_local_dir[trial] = osp.join(trial.logdir, "episode_data")
        os.makedirs(self._trial_local_dir[trial], exist_ok=True)

    def log_trial_result(self, iteration, trial, result):
        if "episode_data" not in result["episode_media"]:
            return

        step = result.get(TIMESTEPS_TOTAL) or result[TRAINING_ITERATION]
        data_file = osp.join(self._trial_local_dir[trial], f"data-{step:08d}.json")

        num_episodes = result["episodes_this_iter"]
        data = result["episode_media"]["episode_data"]
        episode_data = data[-num_episodes:]

        if "evaluation" in result:
            data = result["evaluation"]["episode_media"]["episode_data"]
            episode_data += data[-num_episodes:]

        json.dump(episode_data, open(data_file, "w"))


if __name__ == "__main__":
    ray.init(num_cpus=3)
    tune.run(
        "PPO",
        config={
            "env": Plant,
            "env_config": {"own": sys.argv[2]},
            "callbacks": CustomCallbacks,
            "num_workers": 1,
            "rollout_fragment_length": 50,
            "train_batch_size": 50,
            "sgd_minibatch_size": 50,
            "num_sgd_iter": 1,
            "evaluation_interval": 1,
            "evaluation_num_episodes": 2,
            "framework": "torch",
        },
        stop={"training_iteration": 3},
        callbacks=[DataLoggerCallback()],
        local_dir=sys.argv[1],
        verbose=0,
    )
