"""DQN and SAC that replay columns against the same ones with Ray's own buffers and env runners.

All train the same old tuned example in this process, one iteration each in turn, so that whatever
else the machine does meets all; the ratios are medians of those of neighbours. The CPU time of
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
    "DQN, 3 agents": ("1.2.0-DQN-cartpole-dqn", 100),
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
    """Prints how fast all are, and the ratios."""
    import rllib_compat

    file, steps = EXAMPLES[name]
    algorithm, config = example(file, steps)
    several = "agents" in name
    if several:
        config |= of_three_agents(config["env"])
    kind = getattr(rllib_compat, f"{algorithm}Trainer")
    trainers = {
        side: kind({**config, **more}, replay_columns=columns)
        for side, (columns, more) in sides(several).items()
    }
    for trainer in trainers.values():
        while trainer.train()["timesteps_total"] < STARTS + 100:
            pass
    speeds: dict[str, list[tuple[float, float]]] = {side: [] for side in trainers}
    for _ in range(iterations):
        for side, trainer in trainers.items():
            before = trainer.last_result["timesteps_total"]
            start = time.perf_counter(), time.process_time()
            sampled = trainer.train()["timesteps_total"] - before
            wall, cpu = time.perf_counter() - start[0], time.process_time() - start[1]
            speeds[side].append((sampled / wall, sampled / cpu))
    ours, *others = speeds
    for side in speeds:
        wall, cpu = (statistics.median(each) for each in zip(*speeds[side], strict=True))
        print(f"  {name:<14} {side:<40} {wall:6.0f} steps/s, {cpu:6.0f} a second of CPU time")
    for side in others:
        wall, cpu = (
            statistics.median(a[i] / b[i] for a, b in zip(speeds[ours], speeds[side], strict=True))
            for i in (0, 1)
        )
        print(f"  {name:<14} {wall:.1f} times as many as with {side} (CPU: {cpu:.1f})")
    for trainer in trainers.values():
        trainer.stop()


def of_three_agents(env: str) -> dict[str, Any]:
    """What makes three agents of two policies of one, each in an environment of its own."""
    from ray.rllib.env.multi_agent_env import make_multi_agent

    policies = {"first": (None, None, None, {}), "others": (None, None, None, {})}
    return {
        "env": make_multi_agent(env),
        "env_config": {"num_agents": 3},
        "multiagent": {
            "policies": policies,
            "policy_mapping_fn": lambda agent: "others" if agent else "first",
        },
    }


def sides(several: bool) -> dict[str, tuple[bool, dict[str, Any]]]:
    """Whether columns are replayed, and what the config has beside the example's; ours first."""
    from ray.rllib.env.multi_agent_env_runner import MultiAgentEnvRunner
    from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner

    rays = MultiAgentEnvRunner if several else SingleAgentEnvRunner
    return {
        "columns": (True, {}),
        "Ray's buffers": (False, {}),
        "Ray's buffers and env runner": (False, {"env_runner_cls": rays}),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--iterations", type=int, default=10)
    parser.add_argument("--example", choices=EXAMPLES, action="append")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    import ray

    logging.disable(logging.WARNING)
    ray.init(num_cpus=2, include_dashboard=False, logging_level=logging.ERROR)
    print(f"{options.iterations} iterations each, in turn, on {os.cpu_count()} cores")
    for name in options.example or EXAMPLES:
        compared(name, options.iterations)


if __name__ == "__main__":
    main()
