"""What people wait for beside training, and what it may cost at most: a table of the guide.

Commands are compared as whole processes, in turn; each row says with what::

    python benchmarks/goals.py --write
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # before numpy is there

import bench_convert
import bench_large
import guide_tables
import numpy as np
from pairs import Contender, compare

import rllib_compat

RESULTS = Path(__file__).with_suffix(".json")
PAGE = guide_tables.GUIDE / "how_fast.md"
PYTHON = [sys.executable, "-W", "ignore"]
CLI = [sys.executable, "-m", "rllib_compat"]
OURS = """
import rllib_compat as compat

trainer = compat.PPOTrainer(
    {
        "env": "CartPole-v1",
        "num_workers": 0,
        "framework": "torch",
        "train_batch_size": 400,
        "rollout_fragment_length": 400,
        "sgd_minibatch_size": 100,
        "num_sgd_iter": 2,
        "model": {"fcnet_hiddens": [64, 64]},
    },
    legacy_ray="1.13.0",
)
print("trained", trainer.train()["timesteps_total"])
"""
RAYS = """
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig

config = PPOConfig().environment("CartPole-v1")
config.env_runners(num_env_runners=0, rollout_fragment_length=400)
config.training(train_batch_size_per_learner=400, minibatch_size=100, num_epochs=2)
config.rl_module(model_config=DefaultModelConfig(fcnet_hiddens=[64, 64]))
print("trained", config.build_algo().train()["num_env_steps_sampled_lifetime"])
"""


def first_iteration(_: Path) -> float:
    """A Trainer from nothing to its first iteration, times Ray's own algorithm."""

    def trained(output: str) -> bool:
        return "trained 400" in output

    ours, theirs = ([*PYTHON, "-c", code] for code in (OURS, RAYS))
    return times(
        Contender("a Trainer's first iteration", ours, worked=trained),
        Contender("Ray's own", theirs, worked=trained),
    )


def run_of_a_script(folder: Path) -> float:
    """`rllib-compat run` of a script that does nothing: seconds beyond those of Python."""
    script = folder / "script.py"
    script.write_text("print('it runs')\n")
    contenders = (
        Contender("rllib-compat run", [*CLI, "run", str(script)], worked=bool),
        Contender("python", [*PYTHON, str(script)], worked=bool),
    )
    runs = [[contender.seconds() for contender in contenders] for _ in range(6)][1:]
    return statistics.median(ours - theirs for ours, theirs in runs)


def conversion(_: Path) -> float:
    """`convert` of the demo with its proof, times importing torch and RLlib."""
    return 1 / bench_convert.compare_with_imports(bench_convert.DEFAULT, 5)


def large_inspection(folder: Path) -> list[float]:
    """`inspect` of a checkpoint of 3 GB: seconds, and MB of memory."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        old = pool.apply(bench_large.make, (folder, 3.0))
    command = [*CLI, "inspect", str(old)]
    runs = [bench_large.seconds_and_memory(command) for _ in range(4)][1:]
    seconds, memory = zip(*runs, strict=True)
    return [statistics.median(seconds), max(memory) / 1e6]


def thousand_actions(_: Path) -> float:
    """`load_policy`: the actions of 1,000 observations, times the same layers in torch."""
    import torch

    torch.set_num_threads(1)
    policy = rllib_compat.load_policy(
        bench_convert.DEFAULT / "checkpoint_2",
        observation_space="Box(4,)",
        action_space="Discrete(2)",
    )
    rows = np.random.default_rng(0).normal(size=(1000, 4)).astype(np.float32)
    layers = [torch.nn.Linear(*sizes) for sizes in ((4, 32), (32, 32), (32, 2))]
    net = torch.nn.Sequential(layers[0], torch.nn.ReLU(), layers[1], torch.nn.ReLU(), layers[2])
    mean, deviation = torch.zeros(4), torch.ones(4)  # of the observation filter

    def in_torch() -> object:
        with torch.no_grad():
            logits = net((torch.from_numpy(rows) - mean) / deviation)
            return torch.distributions.Categorical(logits=logits).sample().numpy()

    def ours() -> object:
        return policy.compute_actions(rows, full_fetch=False)

    assert "4-32-32-2 relu" in policy.network.summary
    found = [(cost(ours), cost(in_torch)) for _ in range(20)]
    return statistics.median(mine / theirs for mine, theirs in found)


def small_checkpoints(_: Path) -> float:
    """`--to msgpack --recursive`: checkpoints a second of one process, of `bench_archive.py`."""
    archive = json.loads((PAGE.parents[1] / "benchmarks/archive.json").read_text("utf-8"))
    return float(archive["1 process"]["rate"])


def times(ours: Contender, theirs: Contender) -> float:
    """How many times as long as `theirs` `ours` takes."""
    return 1 / compare(ours, theirs, 5)


def cost(call: Callable[[], object]) -> float:
    """The seconds of a call, the least of some."""
    found = []
    for _ in range(5):
        began = time.perf_counter()
        call()
        found.append(time.perf_counter() - began)
    return min(found)


#: What is measured, how it is written, and the goal.
GOALS: dict[str, tuple[Callable[[Path], float | list[float]], str, str]] = {
    "first iteration": (first_iteration, "{:.2f} ×", "1.1 ×"),
    "run": (run_of_a_script, "{:.2f} s", "1 s"),
    "conversion": (conversion, "{:.2f} ×", "1.2 ×"),
    "large inspection": (large_inspection, "{:.2f} s, {:.0f} MB", "2 s, 200 MB"),
    "small checkpoints": (small_checkpoints, "{:.0f} a second", "at least 20 a second"),
    "actions": (thousand_actions, "{:.2f} ×", "1.5 ×"),
}


def table(results: dict[str, float | list[float]]) -> str:
    """The table of the guide."""
    lines = ["| what | measured | goal |", "|---|--:|--:|"]
    for name, (measure, form, goal) in GOALS.items():
        if name in results:
            found = results[name]
            said = form.format(*(found if isinstance(found, list) else [found]))
            what = str(measure.__doc__).rstrip(".")
            lines.append(f"| {what} | {said} | {goal} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measures what was named, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("goals", nargs="*", choices=[[], *GOALS], help="without any: all")
    parser.add_argument("--folder", type=Path, help="where there is room for 3 GB")
    parser.add_argument("--write", action="store_true", help="puts the table into the guide")
    given = parser.parse_args()
    results = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    for name in given.goals or GOALS:
        with tempfile.TemporaryDirectory(dir=given.folder) as folder:
            results[name] = GOALS[name][0](Path(folder))
        print(name, results[name], flush=True)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", "utf-8")
    if given.write:
        guide_tables.put("goals", table(results), PAGE)


if __name__ == "__main__":
    main()
