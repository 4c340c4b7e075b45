"""What a frozen policy costs in memory for each added env runner, against Ray's private copies.

For each number of env runners and size of policy, a process trains a league of Ray's PPO: one
policy learns, and frozen ones are added while it goes on. One time Ray is alone, the other time
`league.share_frozen` was called. Memory is the proportional set size (PSS) of the env runners'
processes, of the algorithm and of the raylet, and once the object store that all of them have
mapped: what the objects in it take, by Ray's account. (By pages, it would be all that samples have
ever passed through, which is chance.) A page that n processes share counts 1/n in each. Each runner
has read all weights of all policies before, for a page that nobody has read yet counts nowhere.
What grows with runners and policies is told apart by differences, in which what the algorithm has
for itself is gone:

    growth = ((M(most, P) − M(most, F)) − (M(fewest, P) − M(fewest, F))) / (most − fewest) / (P − F)

F is the first few policies. While these come, an env runner's heap grows by about a MiB, with Ray
alone, too, whatever their size is.

What is private to the processes (anonymous pages) is told beside it.

Then two runners in one process sample in turn, with shared and with private weights.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

MODES = ("Ray alone", "shared")
FIRST = 3
HIDDEN = {1: 512, 2: 724, 4: 1024}  # two layers of so many units have so many MiB


def make(frozen: int, runners: int, mib: int) -> Any:
    """Builds PPO with one learner's policy, `frozen` policies, and remote runners."""
    from ray.rllib.algorithms.ppo import PPOConfig
    from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
    from ray.rllib.env.multi_agent_env import MultiAgentEnv

    from rllib_compat.ray_versions import algorithms

    class Match(MultiAgentEnv):
        """Ten steps of two agents, which see nothing of interest."""

        def __init__(self, config: Any = None) -> None:
            super().__init__()
            self.agents = self.possible_agents = ["us", "them"]
            box = gym.spaces.Box(-1, 1, (8,))
            self.observation_spaces = dict.fromkeys(self.agents, box)
            self.action_spaces = dict.fromkeys(self.agents, gym.spaces.Discrete(2))
            self.seen = dict.fromkeys(self.agents, np.zeros(8, np.float32))

        def reset(self, *, seed: Any = None, options: Any = None) -> Any:
            self.step_number = 0
            return self.seen, {}

        def step(self, actions: Any) -> Any:
            self.step_number += 1
            done = {"__all__": self.step_number == 10}
            return self.seen, dict.fromkeys(self.agents, 1.0), done, {"__all__": False}, {}

    def mapping(agent: str, episode: Any, **_: Any) -> str:
        return "main" if agent == "us" or not frozen else f"frozen{hash(episode.id_) % frozen}"

    names = ["main", *(f"frozen{number}" for number in range(frozen))]
    model = DefaultModelConfig(fcnet_hiddens=[HIDDEN[mib]] * 2)
    config = (
        PPOConfig()
        .environment(Match)
        .env_runners(
            num_env_runners=runners, num_cpus_per_env_runner=0.1, rollout_fragment_length=20
        )
        .training(train_batch_size=20 * max(runners, 1), minibatch_size=20, num_epochs=1)
        .rl_module(model_config=model)
        .multi_agent(policies=set(names), policy_mapping_fn=mapping, policies_to_train=["main"])
    )
    return algorithms.build_algorithm(config)


def challenge(algorithm: Any, number: int) -> None:
    """Adds a frozen policy with the weights of the one that learns."""
    from ray.rllib.core.rl_module.rl_module import RLModuleSpec

    main = algorithm.get_module("main")
    spec = RLModuleSpec.from_module(main)
    name = f"frozen{number}"

    def mapping(agent: str, episode: Any, **_: Any) -> str:
        return "main" if agent == "us" else f"frozen{hash(episode.id_) % (number + 1)}"

    algorithm.add_module(name, spec, new_agent_to_module_mapping_fn=mapping)


def quiet() -> None:
    import logging

    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)


def memory(algorithm: Any) -> list[float]:
    """The memory of all remote env runners, the raylet, this process and the store, in MiB.

    Returns:
        All of it, and what is private.
    """
    from rllib_compat.ray_versions import env_runners

    def tidy() -> int:
        import ctypes
        import gc

        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)
        return os.getpid()

    def process_id(runner: Any) -> int:
        for module in dict(runner.module.items()).values():
            for weights in module.get_state().values():
                weights.sum()
        return tidy()

    group = algorithm.env_runner_group
    runners = env_runners.foreach_env_runner(group, process_id, local_env_runner=False)
    mine = [
        pid for pid in (int(path.name) for path in Path("/proc").glob("[0-9]*")) if is_my_store(pid)
    ]
    found = [pss(pid) for pid in (tidy(), *mine, *runners)]
    processes, private = (sum(column) for column in zip(*found, strict=True))
    return [processes + stored(), private]


def stored() -> float:
    """What the objects in Ray's object store take, in MiB."""
    import ray

    name = "object_store_memory"
    found = [float("inf")]
    while len(found) < 4 or len(set(found[-3:])) > 1:  # samples go, and Ray's account follows
        time.sleep(1)
        found.append(ray.cluster_resources()[name] - ray.available_resources()[name])
    return found[-1] / 2**20


def is_my_store(pid: int) -> bool:
    """Whether a process is the raylet, which holds the object store, that this one has started."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:  # it has just ended
        return False
    return status.startswith("Name:\traylet\n") and f"\nPPid:\t{os.getpid()}\n" in status


def pss(pid: int) -> list[float]:
    """The PSS of a process without the object store, and that of anonymous pages, in MiB."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    sizes = {line.partition(":")[0]: int(line.split()[1]) / 1024 for line in lines[1:]}
    return [sizes["Pss"] - sizes["Pss_Shmem"], sizes["Pss_Anon"]]


def grow(mode: str, runners: int, mib: int, counts: list[int]) -> dict[str, list[float]]:
    """The memory of all runners with the first frozen policies and with each of `counts`."""
    import ray

    from rllib_compat import league

    quiet()
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        object_store_memory=2 * 1024**3,
    )
    algorithm = make(0, runners, mib)
    if mode == "shared":
        league.share_frozen(algorithm)
    algorithm.train()
    found: dict[str, list[float]] = {}
    number = 0
    for count in [*range(1, FIRST + 1), *counts]:
        while number < count:
            challenge(algorithm, number)
            number += 1
        algorithm.train()
        found[str(count)] = memory(algorithm)
    algorithm.stop()
    ray.shutdown()
    return found


def sampling(mib: int, frozen: int, rounds: int) -> float:
    """How fast a runner samples with shared weights, as a fraction of that with private ones."""
    import ray

    from rllib_compat import league

    quiet()
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    private, shared = make(frozen, 0, mib), make(frozen, 0, mib)
    league.share_frozen(shared)
    ratios = []
    for _ in range(rounds):
        seconds = []
        for algorithm in (private, shared):
            begin = time.perf_counter()
            algorithm.env_runner.sample(num_timesteps=200, random_actions=False)
            seconds.append(time.perf_counter() - begin)
        ratios.append(seconds[0] / seconds[1])
    ray.shutdown()
    return statistics.median(ratios[1:])


def draw(found: dict[str, Any], runners: list[int], path: str) -> None:
    try:
        import matplotlib
    except ImportError:
        print(f"{path} is not drawn: there is no matplotlib")
        return
    matplotlib.use("agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4.5))
    for key, by_runners in found.items():
        mode, mib, count = key.split("|")
        values = [by_runners[str(r)] for r in runners]
        style = "-" if mode == "shared" else "--"
        axes.plot(runners, values, style, marker="o", label=f"{mode}: {count} × {mib} MiB")
    axes.set_xlabel("env runners")
    axes.set_ylabel("memory of frozen policies in all runners [MiB PSS]")
    axes.legend()
    figure.savefig(path, bbox_inches="tight")
    print(f"drawn: {path}")


def part(*arguments: str) -> Any:
    """Runs a part of this in a process of its own."""
    command = [sys.executable, __file__, "--part", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.strip().splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runners", type=int, nargs="+", default=[2, 4, 8])
    parser.add_argument("--policies", type=int, nargs="+", default=[10, 30])
    parser.add_argument("--mib", type=int, nargs="+", default=[1, 4], choices=sorted(HIDDEN))
    parser.add_argument("--rounds", type=int, default=41)
    parser.add_argument("--plot", default="league_memory.png")
    parser.add_argument("--part", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        what, *given = options.part
        if what == "sampling":
            print(json.dumps(sampling(int(given[0]), int(given[1]), int(given[2]))))
        else:
            print(json.dumps(grow(what, int(given[0]), int(given[1]), list(map(int, given[2:])))))
        return
    counts = [str(count) for count in options.policies]
    plotted: dict[str, Any] = {}
    fewest, most = min(options.runners), max(options.runners)
    for mib in options.mib:
        extra: dict[tuple[str, int, str], Any] = {}
        for runners in options.runners:
            for mode in MODES:
                found = part(mode, str(runners), str(mib), *counts)
                for count in counts:
                    extra[mode, runners, count] = np.subtract(found[count], found[str(FIRST)])
                    of_runners = plotted.setdefault(f"{mode}|{mib}|{count}", {})
                    of_runners[str(runners)] = extra[mode, runners, count][0]
                print(f"  {runners} runners, {mib} MiB, {mode}: {found}", flush=True)
        for count in counts if most > fewest else []:
            each = {
                mode: (extra[mode, most, count] - extra[mode, fewest, count])
                * (1024 / (most - fewest) / (int(count) - FIRST))
                for mode in MODES
            }
            for kind, ray_alone, shared in zip(("PSS", "private"), *each.values(), strict=True):
                print(
                    f"{count} frozen policies of {mib} MiB: each costs an added runner "
                    f"{ray_alone:.0f} KiB with Ray alone, {shared:.0f} KiB shared: "
                    f"{shared / ray_alone:.1%} ({kind})",
                    flush=True,
                )
    draw(plotted, options.runners, options.plot)
    for mib in options.mib:
        speed = part("sampling", str(mib), str(min(options.policies)), str(options.rounds))
        print(f"sampling with shared weights of {mib} MiB: {speed:.1%} of the speed with private")


if __name__ == "__main__":
    main()
