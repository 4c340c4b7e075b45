"""The command that plays checkpoints, called in Python: it saves rollouts as pickle and shelf."""

import os
import pickle
import shelve
import tempfile

import gym
import numpy as np
import ray
from facts import record
from ray.rllib.agents.pg import PGTrainer
from ray.rllib.rollout import create_parser, run
from ray.tune.registry import register_env


class Lane(gym.Env):
    def __init__(self, config):
        self.observation_space = gym.spaces.Box(0, 20, (2,), np.float32)
        self.action_space = gym.spaces.Discrete(2)

    def reset(self):
        self.n = 0
        return np.zeros(2, np.float32)

    def step(self, action):
        self.n += 1
        return np.full(2, self.n, np.float32), 1.0, self.n == 6, {"n": self.n}


register_env("lane", lambda config: Lane(config))
ray.init()
trainer = PGTrainer(
    env="lane",
    config={
        "num_workers": 0,
        "use_pytorch": True,
        "train_batch_size": 12,
        "rollout_fragment_length": 12,
    },
)
checkpoint = trainer.save()
trainer.stop()
folder = tempfile.mkdtemp()
flat, shelf = os.path.join(folder, "rollouts.pkl"), os.path.join(folder, "shelf")
parser = create_parser()
common = [checkpoint, "--run", "PG", "--env", "lane", "--no-render"]
more = ["--episodes", "2", "--out", flat, "--save-info", "--track-progress"]
run(parser.parse_args(common + more), parser)
run(parser.parse_args([*common, "--steps", "8", "--out", shelf, "--use-shelve"]), parser)
with open(flat, "rb") as file:
    rollouts = pickle.load(file)
with shelve.open(shelf) as kept:
    lengths = [len(kept[str(number)]) for number in range(kept["num_episodes"])]
record(
    lengths=[len(rollout) for rollout in rollouts],
    step=len(rollouts[0][0]),
    info=rollouts[0][0][-1],
    done=bool(rollouts[0][-1][4]),
    shelved=lengths,
)
