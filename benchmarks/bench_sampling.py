"""Env runners of a trainer, which go past connectors, against Ray's own ones.

Both sample the same config in this process, a fragment each in turn; the ratios are medians of
those of neighbours, of steps per second of CPU time. Only today's Ray is needed.
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

STEPS = 500


def cases() -> dict[str, Callable[[], Any]]:
    """What is sampled."""
    from ray.rllib.algorithms.dqn import DQNConfig
    from ray.rllib.algorithms.ppo import PPOConfig

    from rllib_compat.adapters import mean_std_filter

    def ppo(env: str, envs: int, **more: Any) -> Any:
        return PPOConfig().environment(env).env_runners(num_envs_per_env_runner=envs, **more)

    return {
        "PPO, CartPole": lambda: ppo("CartPole-v1", 1),
        "PPO, CartPole, 5 environments": lambda: ppo("CartPole-v1", 5),
        "PPO, CartPole, filter": lambda: ppo(
            "CartPole-v1", 1, env_to_module_connector=mean_std_filter
        ),
        "PPO, Pendulum": lambda: ppo("Pendulum-v1", 1),
        "DQN, CartPole": lambda: DQNConfig().environment("CartPole-v1"),
    }


def compared(name: str, make: Callable[[], Any], fragments: int) -> None:
    """Prints how fast both are, and the ratio."""
    from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner

    from rllib_compat.adapters import CompatEnvRunner

    runners = [kind(config=make()) for kind in (CompatEnvRunner, SingleAgentEnvRunner)]
    speeds: list[list[float]] = [[], []]
    for number in range(fragments + 1):
        for runner, mine in zip(runners, speeds, strict=True):
            start = time.process_time()
            runner.sample(num_timesteps=STEPS)
            if number:  # the first is not counted
                mine.append(STEPS / (time.process_time() - start))
    ours, rays = map(statistics.median, speeds)
    ratio = statistics.median(a / b for a, b in zip(*speeds, strict=True))
    print(f"  {name:<30} {ours:6.0f} steps/s, Ray alone {rays:6.0f}: {ratio:.1f} times as many")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fragments", type=int, default=10)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    print(f"{options.fragments} fragments of {STEPS} steps each, on {os.cpu_count()} cores")
    for name, make in cases().items():
        compared(name, make, options.fragments)


if __name__ == "__main__":
    main()
