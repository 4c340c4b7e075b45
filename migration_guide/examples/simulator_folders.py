"""Trains with a simulator that writes files, and unpacks those of a checkpoint.

python simulator_folders.py [ITERATIONS]
"""

import csv
import sys
import tempfile
import uuid
from pathlib import Path

import gymnasium as gym
import numpy as np
import ray

import rllib_compat as compat
from rllib_compat.artifacts import SimulatorFolders, extract


class Simulator(gym.Env):
    """Writes a table of each episode into a folder of its own, on whichever machine it is."""

    def __init__(self, config=None):
        self.observation_space = gym.spaces.Box(-10, 10, (1,))
        self.action_space = gym.spaces.Discrete(2)
        self.output_folder = Path(tempfile.gettempdir()) / f"simulator-{uuid.uuid4().hex}"
        self.output_folder.mkdir()
        self.episode = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.episode += 1
        self.rows = [[0, 0]]
        return np.zeros(1, np.float32), {}

    def step(self, action):
        time, place = self.rows[-1]
        self.rows.append([time + 1, place + (1 if action else -1)])
        done = time + 1 == 10
        if done:
            with (self.output_folder / f"episode-{self.episode}.csv").open("w") as file:
                csv.writer(file).writerows(self.rows)
        return np.array([self.rows[-1][1]], np.float32), float(action), done, False, {}


def main(iterations: int) -> str:
    trainer = compat.PPOTrainer(
        env=Simulator,
        config={
            "num_workers": 2,
            "train_batch_size": 200,
            "sgd_minibatch_size": 100,
            "num_sgd_iter": 2,
            "callbacks": SimulatorFolders("output_folder"),  # the one line
        },
    )
    for _ in range(iterations):
        trainer.train()
    checkpoint = trainer.save()
    trainer.stop()
    return checkpoint


if __name__ == "__main__":
    ray.init(num_cpus=3, include_dashboard=False)
    checkpoint = main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
    out = Path(tempfile.mkdtemp()) / "results"
    for folder in extract(checkpoint, out).folders:
        print(out / folder.place, len(folder.files), "files")
    print(f"rllib-compat artifacts {checkpoint} --verify")
