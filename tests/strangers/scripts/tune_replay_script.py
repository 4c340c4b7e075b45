"""A project with its parameters as JSON in env_config, and its script that replays a checkpoint."""

import json
import os
import pickle

import gym
import numpy as np
import ray
from facts import record
from ray.rllib.agents.registry import get_agent_class
from ray.tune import run_experiments
from ray.tune.registry import register_env


class Merge(gym.Env):
    def __init__(self, project):
        self.project = project
        bound, cars = float("inf"), project["cars"]
        self.observation_space = gym.spaces.Box(-bound, bound, (2 * cars,), np.float32)
        self.action_space = gym.spaces.Box(-4.5, project["accel"], (2,), np.float32)
        self.t = 0

    def look(self):
        return np.full(self.observation_space.shape, self.t, np.float32)

    def reset(self):
        self.t = 0
        return self.look()

    def step(self, rl_actions):
        self.t += 1
        return self.look(), 0.5 * self.t, self.t >= self.project["horizon"], {"speed": 3.0 * self.t}


def register(project, version=0):
    name = "Merge-v{}".format(version)
    register_env(name, lambda *_: Merge(project))
    return name


def on_episode_start(info):
    info["episode"].user_data["speeds"] = []


def on_episode_step(info):
    env = info["env"].get_unwrapped()[0]
    if env.t > 0:
        info["episode"].user_data["speeds"].append(3.0 * env.t)


def on_episode_end(info):
    episode = info["episode"]
    episode.custom_metrics["speed"] = np.mean(episode.user_data["speeds"])


project = {"tag": "merge", "cars": 3, "accel": 2.6, "horizon": 8}
ray.init(num_cpus=2)
agent_cls = get_agent_class("PPO")
config = agent_cls._default_config.copy()
config["num_workers"] = 0
config["train_batch_size"] = 32
config["sample_batch_size"] = 16
config["sgd_minibatch_size"] = 16
config["model"].update({"fcnet_hiddens": [8, 8]})
config["num_sgd_iter"] = 2
config["horizon"] = 8
config["use_pytorch"] = True
config["clip_actions"] = False
config["callbacks"] = {f.__name__: f for f in (on_episode_start, on_episode_step, on_episode_end)}
config["env_config"]["project"] = json.dumps(project, sort_keys=True, indent=4)
config["env_config"]["run"] = "PPO"
trials = run_experiments(
    {
        project["tag"]: {
            "run": "PPO",
            "env": register(project),
            "config": dict(config),
            "checkpoint_freq": 1,
            "checkpoint_at_end": True,
            "max_failures": 2,
            "stop": {"training_iteration": 2},
            "num_samples": 1,
        }
    },
    verbose=0,
)
last, folder = trials[0].last_result, trials[0].logdir

# The other script: it knows the folder and the number of a checkpoint.
with open(os.path.join(folder, "params.pkl"), "rb") as file:
    loaded = pickle.load(file)
with open(os.path.join(folder, "params.json")) as file:
    run = json.load(file)["env_config"]["run"]
again = json.loads(loaded["env_config"]["project"])
agent = get_agent_class(run)(env=register(again, version=7), config=loaded)
agent.restore(os.path.join(folder, "checkpoint_2", "checkpoint-2"))
env = agent.workers.local_worker().env
state, total, steps, done = env.reset(), 0, 0, False
while not done:
    state, reward, done, _ = env.step(agent.compute_action(state))
    total += reward
    steps += 1
record(
    reward=last["episode_reward_mean"],
    speed=last["custom_metrics"]["speed_mean"],
    replayed=[total, steps],
    project=again,
    gamma=loaded["gamma"],
    iteration=agent.iteration,
    numbers=sorted(int(d.split("_")[1]) for d in os.listdir(folder) if d.startswith("checkpoint_")),
)
agent.stop()
