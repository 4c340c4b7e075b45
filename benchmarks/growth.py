"""How the cost of a step grows: with environments, policies, buffers, episodes, config, callbacks.

Each point is a process of its own, on one core and with one thread, and costs are CPU time after a
warm-up. What must not grow is the cost of a step of the environment (of an agent, where there are
several), of a draw of 32 transitions, and of a key::

    python benchmarks/growth.py --write            # every line, and the picture
    python benchmarks/growth.py policies callbacks
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import guide_tables
import gymnasium as gym
import numpy as np

RESULTS = Path(__file__).with_suffix(".json")
PAGE = guide_tables.GUIDE / "how_fast.md"
PICTURE = PAGE.with_name("how_cost_grows.png")
#: The rows of a train batch, of each policy where there are several.
BATCH, SMALL_BATCH = 4096, 64
#: CPU time in s that a point is measured for, at least.
LEAST = 5.0


class Ones(gym.Env):
    """Costs nothing, and ends after `length` steps."""

    observation_space = gym.spaces.Box(-1, 1, (4,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, length: int) -> None:
        self.length, self.step_count = length, 0
        self.observation = np.ones(4, np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.step_count = 0
        return self.observation, {}

    def step(self, action: int) -> Any:
        self.step_count += 1
        return self.observation, 1.0, self.step_count == self.length, False, {}


def cost_of_a_step(config: dict[str, Any], length: int = 200, agents: int = 1) -> float:
    """The CPU time in µs of a step of an agent that PPO samples and trains on."""
    import ray
    from ray.tune.registry import register_env

    import rllib_compat as compat

    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    if agents == 1:
        register_env("ones", lambda _: Ones(length))
    else:
        from ray.rllib.env.multi_agent_env import make_multi_agent

        of_each = make_multi_agent(lambda _: Ones(length))
        register_env("ones", lambda _: of_each({"num_agents": agents}))
    trainer = compat.PPOTrainer(
        {
            "env": "ones",
            "num_workers": 0,
            "framework": "torch",
            "train_batch_size": BATCH,
            "sgd_minibatch_size": 512,
            "num_sgd_iter": 2,
            "rollout_fragment_length": 256,
            "model": {"fcnet_hiddens": [32, 32]},
            **config,
        },
        legacy_ray="1.13.0",
    )
    before = trainer.train()["timesteps_total"]
    steps, began = 0, time.process_time()
    while (taken := time.process_time() - began) < LEAST or steps < length:
        steps = trainer.train()["timesteps_total"] - before
    return taken / steps / agents * 1e6


def environments(count: int) -> float:
    """The environments of the worker."""
    return cost_of_a_step({"num_envs_per_worker": count, "rollout_fragment_length": BATCH // count})


def policies(count: int) -> float:
    """The policies, each with an agent of its own."""
    names = {f"policy_{number}": (None, None, None, {}) for number in range(count)}
    several = {"policies": names, "policy_mapping_fn": lambda agent, *_, **__: f"policy_{agent}"}
    sizes = dict.fromkeys(
        ("train_batch_size", "sgd_minibatch_size", "rollout_fragment_length"), SMALL_BATCH
    )
    return cost_of_a_step({"multiagent": several, **sizes}, agents=count)


def episode_length(count: int) -> float:
    """The steps of an episode."""
    return cost_of_a_step({}, count)


def callbacks(count: int) -> float:
    """The classes of callbacks, each with a method that is called after each step."""
    import rllib_compat as compat

    compat.activate()
    from ray.rllib.agents.callbacks import MultiCallbacks

    class Steps(compat.DefaultCallbacks):  # type: ignore[misc]
        def on_episode_step(self, **_: Any) -> None:
            pass

    return cost_of_a_step({"callbacks": MultiCallbacks([Steps] * count)} if count else {})


def config_keys(count: int) -> float:
    """The keys of `env_config`: the CPU time in µs that one takes in a translation."""
    import rllib_compat as compat

    config = {"env": "CartPole-v1", "env_config": {f"key_{n}": n for n in range(count)}}
    return cost_of_a_call(lambda: compat.translate(config, algorithm="PPO")) / count


def buffer(count: int) -> float:
    """The transitions that a buffer with priorities holds: the CPU time in µs of a draw of 32."""
    from rllib_compat.algorithms.replay import ReplayBuffer, RingStorage

    replay = ReplayBuffer(RingStorage(count), alpha=0.6)
    many = min(count, 100_000)
    vectors, numbers = np.ones((many, 4), np.float32), np.ones(many, np.float32)
    rows = {"obs": vectors, "new_obs": vectors, "actions": numbers, "rewards": numbers}
    for start in range(0, count, many):
        replay.keep(rows, np.random.default_rng(start).random(many))

    def draw() -> None:
        _, _, drawn = replay.draw(32, 0.4)
        replay.prioritize(np.random.random(32), drawn)

    return cost_of_a_call(draw)


def cost_of_a_call(call: Callable[[], object]) -> float:
    """The CPU time in µs of a call, after one that is not measured."""
    call()
    calls, began = 0, time.process_time()
    while (taken := time.process_time() - began) < LEAST:
        call()
        calls += 1
    return taken / calls * 1e6


LINES: dict[str, tuple[Callable[[int], float], tuple[int, ...], str]] = {
    "environments": (environments, (1, 4, 16, 64), "a step"),
    "policies": (policies, (1, 10, 50, 200), "a step of an agent"),
    "buffer": (buffer, (10**4, 10**5, 10**6, 10**7), "a draw"),
    "episode_length": (episode_length, (10, 100, 1000, 10**4, 10**5), "a step"),
    "config_keys": (config_keys, (10, 100, 1000, 10**4), "a key"),
    "callbacks": (callbacks, (0, 1, 10, 50), "a step"),
}


def measure(name: str, count: int) -> float:
    """Measures a point in a process of its own."""
    command = [sys.executable, __file__, "--point", name, str(count)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    run = subprocess.run(command, env=environment, capture_output=True, text=True)
    if run.returncode:
        sys.exit(run.stderr[-2000:])
    return float(run.stdout.splitlines()[-1])


def table(results: dict[str, dict[str, float]]) -> str:
    """The table of the guide."""
    lines = ["| what grows | CPU time in µs | of |", "|---|---|---|"]
    for name, (_, counts, unit) in LINES.items():
        found = results[name]
        costs = ", ".join(f"{n:,}: {found[str(n)]:,.0f}" for n in counts if str(n) in found)
        lines.append(f"| {name.replace('_', ' ')} | {costs} | {unit} |")
    return "\n".join([*lines, "", f"![What costs grow with]({PICTURE.name})", ""])


def draw(results: dict[str, dict[str, float]]) -> None:
    """Draws each line, as multiples of its least cost."""
    from matplotlib import pyplot

    figure, axis = pyplot.subplots(figsize=(7, 4), layout="constrained")
    for name, points in results.items():
        least = min(points.values())
        found = [(max(int(n), 1), cost / least) for n, cost in points.items()]
        axis.plot(*zip(*found, strict=True), marker="o", label=name.replace("_", " "))
    axis.set(xscale="log", yscale="log", xlabel="how many", ylabel="cost of one / the least")
    axis.legend(fontsize=8)
    figure.savefig(PICTURE, dpi=100)
    pyplot.close(figure)


def main() -> None:
    """Measures the lines that were named, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("lines", nargs="*", choices=[[], *LINES], help="without any: all")
    parser.add_argument("--write", action="store_true", help="puts the table into the guide")
    parser.add_argument("--point", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.point:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
        name, count = given.point
        print(f"\n{LINES[name][0](int(count))}")
        return
    results = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    for name in given.lines or LINES:
        results[name] = {}
        for count in LINES[name][1]:
            results[name][str(count)] = round(measure(name, count), 1)
            print(name, count, results[name][str(count)], flush=True)
        RESULTS.write_text(json.dumps(results, indent=1) + "\n", "utf-8")
    if given.write:
        guide_tables.put("growth", table(results), PAGE)
        draw(results)


if __name__ == "__main__":
    main()
