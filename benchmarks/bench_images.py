"""PPO on images of 84 × 84 × 4 bytes, beside a real Ray 1.13.0 and Stable-Baselines3.

    python benchmarks/bench_images.py --old-python old/bin/python --sb3-python sb3/bin/python

Each side trains in a process of its own with one thread, and no workers: the same batch,
minibatches and epochs, an environment that costs nothing, and each library's own network for such
images (that of Ray 1.13.0 is ours, too). What counts is steps in a second of CPU time, after a
first iteration; the sides take turns.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from typing import Any

BATCH, MINIBATCH, EPOCHS, ITERATIONS = 512, 128, 4, 2


def env_class(gym: Any, *, old: bool) -> Any:
    import numpy as np

    class Images(gym.Env):  # type: ignore[misc, name-defined]
        observation_space = gym.spaces.Box(0, 255, (84, 84, 4), np.uint8)
        action_space = gym.spaces.Discrete(4)
        frames = np.random.default_rng(0).integers(0, 256, (8, 84, 84, 4), np.uint8)

        def __init__(self, *_: Any, **__: Any) -> None:
            self.steps = 0

        def reset(self, **_: Any) -> Any:
            self.steps = 0
            return self.frames[0] if old else (self.frames[0], {})

        def step(self, action: Any) -> Any:
            self.steps += 1
            seen, ends = self.frames[self.steps % 8], self.steps >= 128
            rest = (1.0, ends, {}) if old else (1.0, ends, False, {})
            return (seen, *rest)

    return Images


def config() -> dict[str, Any]:
    return {
        "num_workers": 0,
        "framework": "torch",
        "train_batch_size": BATCH,
        "rollout_fragment_length": BATCH,
        "sgd_minibatch_size": MINIBATCH,
        "num_sgd_iter": EPOCHS,
    }


def trainer(side: str) -> Any:
    """What makes a step of training when it is called."""
    if side == "old":
        import gym
        import ray
        from ray.rllib.agents.ppo import PPOTrainer

        ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
        return PPOTrainer(config={**config(), "env": env_class(gym, old=True)}).train
    import gymnasium

    env = env_class(gymnasium, old=False)
    if side == "sb3":
        from stable_baselines3 import PPO

        sizes = {"n_steps": BATCH, "batch_size": MINIBATCH, "n_epochs": EPOCHS}
        model = PPO("CnnPolicy", env(), device="cpu", **sizes)
        return lambda: model.learn(BATCH, reset_num_timesteps=False)
    import ray

    import rllib_compat as compat

    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    return compat.PPOTrainer(config={**config(), "env": env}, legacy_ray="1.13.0").train


def measure(side: str) -> None:
    import torch

    torch.set_num_threads(1)
    train = trainer(side)
    train()
    before = time.process_time()
    for _ in range(ITERATIONS):
        train()
    print(ITERATIONS * BATCH / (time.process_time() - before))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--old-python", help="of an environment with Ray 1.13.0 and torch")
    parser.add_argument("--sb3-python", help="of an environment with Stable-Baselines3")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--side", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.side:
        measure(given.side)
        return
    pythons = {"ours": sys.executable, "old": given.old_python, "sb3": given.sb3_python}
    found: dict[str, list[float]] = {side: [] for side, python in pythons.items() if python}
    for _ in range(given.rounds):
        for side, speeds in found.items():
            command = [pythons[side], __file__, "--side", side]
            environment = {**os.environ, "OMP_NUM_THREADS": "1"}
            told = subprocess.run(
                command, env=environment, capture_output=True, text=True, check=True
            )
            speeds.append(float(told.stdout.split()[-1]))
    ours = statistics.median(found["ours"])
    for side, speeds in found.items():
        median = statistics.median(speeds)
        print(f"{side:5} {median:8.1f} steps a CPU second, ours / {side} {ours / median:.2f}")


if __name__ == "__main__":
    main()
