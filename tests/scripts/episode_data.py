"""A script as people wrote them for Ray 1.x: an environment's own data in files of the trial."""

import json
import os
import os.path as osp
import sys

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
        info = {"place": self.places[-1], "speed": 0.2 * self.steps, "articles": self.steps}
        done = self.steps == 10
        if done:  # what the test compares with
            with open(self.own, "a") as file:
                file.write(json.dumps({"place": self.places}) + "\n")
        return np.zeros(2, np.float), 1.0, done, info


class Diary(DefaultCallbacks):
    """Keeps what the infos of an episode say where results look for it."""

    def on_episode_start(self, *, worker, base_env, policies, episode, env_index, **kwargs):
        episode.user_data = {"speeds": []}
        episode.media["diary"] = {"place": []}

    def on_episode_step(self, *, worker, base_env, episode, env_index, **kwargs):
        info = episode.last_info_for()
        episode.media["diary"]["place"].append(info["place"])
        episode.user_data["speeds"].append(info["speed"])
        episode.user_data["articles"] = info["articles"]

    def on_episode_end(self, *, episode, **kwargs):
        speeds, articles = np.array(episode.user_data["speeds"]), episode.user_data["articles"]
        episode.custom_metrics.update(speed=speeds.mean(), way=speeds.sum(), articles=articles)
        episode.hist_data.update(speeds=speeds.tolist(), articles=[articles])


class Diaries(LoggerCallback):
    """A file for each iteration, with its own episodes and those of its evaluation."""

    def log_trial_start(self, trial):
        trial.init_logdir()
        os.mkdir(osp.join(trial.logdir, "diaries"))

    def log_trial_result(self, iteration, trial, result):
        ended = []
        for told in (result, result.get("evaluation", {})):
            diaries = told.get("episode_media", {}).get("diary", [])
            ended.extend(diaries[len(diaries) - told.get("episodes_this_iter", 0) :])
        name = f"{result[TRAINING_ITERATION]}-{result[TIMESTEPS_TOTAL]}.json"
        with open(osp.join(trial.logdir, "diaries", name), "w") as file:
            json.dump(ended, file)


if __name__ == "__main__":
    ray.init(num_cpus=3)
    tune.run(
        "PPO",
        config={
            "env": Plant,
            "env_config": {"own": sys.argv[2]},
            "callbacks": Diary,
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
        callbacks=[Diaries()],
        local_dir=sys.argv[1],
        verbose=0,
    )
