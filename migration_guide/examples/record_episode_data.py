"""Records what an environment says of its own, and reads it again.

python record_episode_data.py [ITERATIONS]
"""

import sys

import gymnasium as gym
import numpy as np
import ray

import rllib_compat as compat
from rllib_compat.episode_data import EpisodeRecorder, read_episodes


class Plant(gym.Env):
    """An article moves through a plant; it may wait or go on, and machines take their time."""

    def __init__(self, config=None):
        self.observation_space = gym.spaces.Box(0, 1, (2,))
        self.action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.time = 0, 0
        return self._seen(), {}

    def step(self, action):
        self.time += 1
        waits = bool(self.np_random.random() < 0.2)
        self.place += int(action == 1 and not waits)
        info = {
            "data": {
                "running": {"waits": waits},
                "final": {"machines_passed": self.place},
            },
            "media": {"trace": [self.time, self.place]},
        }
        done = self.place == 10
        return self._seen(), float(done) - 0.01, done, self.time == 50, info

    def _seen(self):
        return np.array([self.place / 10, self.time / 50], np.float32)


def main(iterations: int) -> str:
    trainer = compat.PPOTrainer(
        env=Plant,
        config={
            "num_workers": 2,
            "train_batch_size": 400,
            "sgd_minibatch_size": 100,
            "num_sgd_iter": 2,
            "callbacks": EpisodeRecorder(),  # the one line
            "evaluation_interval": 2,
            "evaluation_num_episodes": 4,
        },
    )
    for _ in range(iterations):
        result = trainer.train()
        print("machines passed:", result["custom_metrics"].get("machines_passed_mean"))
    folder = trainer.logdir
    trainer.stop()
    return folder


if __name__ == "__main__":
    ray.init(num_cpus=3, include_dashboard=False)
    folder = main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
    for episode in read_episodes(folder):
        if episode["evaluation"]:
            print(episode["iteration"], episode["reward"], episode["media"]["trace"][-1])
    print(f"rllib-compat plot {folder}")
