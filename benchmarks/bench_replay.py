"""DQN and SAC that replay columns against the same ones with Ray's own replay buffers.

Both train the same old tuned example in this process, one iteration each in turn, so that whatever
else the machine does meets both; the ratios are medians of those of neighbours. The CPU time of
the process says the same on a machine that others use, too.
"""

from __future__ import annotations

import argparse
import logging
import os
import statistics
import time
import warnings
from pathlib import Path
from typing import Any

import yaml

EXAMPLES = {
    "DQN, CartPole": ("1.2.0-DQN-cartpole-dqn", 500),
    "SAC, Pendulum": ("2.1.0-SAC-pendulum-sac", 50),
}
#: How long every buffer is filled before anything is measured.
STARTS = 300


def example(file: str, steps: int) -> tuple[str, dict[str, Any]]:
    """The algorithm and the config of an old tuned example, with iterations of so many steps."""
    text = Path(__file__).with_name("tuned_examples").joinpath(f"{file}.yaml").read_text()
    (found,) = yaml.safe_load(text).values()
    shorter = {
        "env": found["env"],
        "num_workers": 0,
        "num_steps_sampled_before_learning_starts": STARTS,
        "min_sample_timesteps_per_iteration": steps,
        "min_time_s_per_iteration": 0,
    }
    return found["run"], {**found["config"], **shorter}


def compared(name: str, iterations: int) -> None:
    """Prints how fast both are, and the ratio."""
    import rllib_compat

    file, steps = EXAMPLES[name]
    algorithm, config = example(file, steps)
    trainers = [
        getattr(rllib_compat, f"{algorithm}Trainer")(config, replay_columns=columns)
        for columns in (True, False)
    ]
    for trainer in trainers:
        while trainer.train()["timesteps_total"] < STARTS + 100:
            pass
    speeds: list[list[tuple[float, float]]] = [[], []]
    for _ in range(iterations):
        for trainer, mine in zip(trainers, speeds, strict=True):
            before = trainer.last_result["timesteps_total"]
            start = time.perf_counter(), time.process_time()
            sampled = trainer.train()["timesteps_total"] - before
            wall, cpu = time.perf_counter() - start[0], time.process_time() - start[1]
            mine.append((sampled / wall, sampled / cpu))
    columns, episodes = (statistics.median(wall for wall, _ in each) for each in speeds)
    wall, cpu = (
        statistics.median(a[i] / b[i] for a, b in zip(*speeds, strict=True)) for i in (0, 1)
    )
    print(
        f"  {name:<15} {columns:6.0f} steps/s with columns, {episodes:6.0f} with episodes: "
        f"{wall:.1f} times as many (CPU: {cpu:.1f})"
    )
    for trainer in trainers:
        trainer.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--iterations", type=int, default=10)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    import ray

    logging.disable(logging.WARNING)
    ray.init(num_cpus=2, include_dashboard=False, logging_level=logging.ERROR)
    print(f"{options.iterations} iterations each, in turn, on {os.cpu_count()} cores")
    for name in EXAMPLES:
        compared(name, options.iterations)


if __name__ == "__main__":
    main()
