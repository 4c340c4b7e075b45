"""Training through `rllib_compat.Trainer` against the same `Algorithm` of today's Ray.

All of them run in this process, one iteration each in turn, so that whatever else the machine does
meets all; the costs are medians of the ratios of neighbours. What is measured is whole iterations
(sampling, learning, result) on a cheap environment with a small network: the worst case for
whatever a layer costs. The CPU time of the process says the same on a machine that others use, too.
"""

from __future__ import annotations

import argparse
import logging
import os
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

STEPS = 2000


def legacy_config() -> dict[str, Any]:
    return {
        "env": "CartPole-v1",
        "num_workers": 0,
        "train_batch_size": STEPS,
        "rollout_fragment_length": STEPS,
        "sgd_minibatch_size": 500,
        "num_sgd_iter": 2,
        "lr": 1e-4,
        "model": {"fcnet_hiddens": [32, 32]},
    }


def native() -> Any:
    """What the legacy config means, written for today's Ray."""
    from ray.rllib.algorithms.ppo import PPOConfig

    config = (
        PPOConfig()
        .environment("CartPole-v1")
        .env_runners(num_env_runners=0, rollout_fragment_length=STEPS)
        .training(train_batch_size=STEPS, minibatch_size=500, num_epochs=2, lr=1e-4)
        .rl_module(model_config={"fcnet_hiddens": [32, 32]})
    )
    return config.build_algo() if hasattr(config, "build_algo") else config.build()


def compat(**more: Any) -> Any:
    import rllib_compat

    return rllib_compat.PPOTrainer(config={**legacy_config(), **more})


def per_step() -> dict[str, Callable[[dict[str, Any]], None]]:
    """What the callbacks of many a project of Ray 0.6 – 0.8 did."""

    def start(info: dict[str, Any]) -> None:
        info["episode"].user_data["angles"] = []

    def step(info: dict[str, Any]) -> None:
        episode = info["episode"]
        episode.user_data["angles"].append(abs(episode.last_observation_for()[2]))

    def end(info: dict[str, Any]) -> None:
        episode = info["episode"]
        angles = episode.user_data["angles"]
        episode.custom_metrics["angle"] = sum(angles) / max(1, len(angles))

    return {"on_episode_start": start, "on_episode_step": step, "on_episode_end": end}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--iterations", type=int, default=15)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    import ray

    ray.init(num_cpus=2, include_dashboard=False, logging_level=logging.ERROR)
    contenders = {
        "today's Algorithm": native(),
        "rllib_compat.Trainer": compat(),
        "… with callbacks for each step": compat(callbacks=per_step()),
    }
    for contender in contenders.values():
        for _ in range(2):
            contender.train()
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in contenders}
    for _ in range(options.iterations):
        for name, contender in contenders.items():
            start = time.perf_counter(), time.process_time()
            contender.train()
            times[name].append((time.perf_counter() - start[0], time.process_time() - start[1]))
    print(f"{options.iterations} iterations of {STEPS} steps, in turn, on {os.cpu_count()} cores")
    first = next(iter(times.values()))
    for name, seconds in times.items():
        wall, cpu = (
            statistics.median(mine[i] / its[i] for mine, its in zip(seconds, first, strict=True))
            for i in (0, 1)
        )
        speed = STEPS / statistics.median(wall for wall, _ in seconds)
        print(f"  {name:<31} {speed:6.0f} steps/s; costs {wall - 1:+.1%} (CPU: {cpu - 1:+.1%})")
    for contender in contenders.values():
        contender.stop()


if __name__ == "__main__":
    main()
