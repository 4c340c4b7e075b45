"""Trains old tuned examples with the real old Ray and with this package, one after the other.

Both sides have the same config and seed, with torch, and stop where the example stops or after
`--limit` seconds of CPU time; each process computes with one thread. `--old-python` is the Python
of an environment with Ray 1.13.0::

    python benchmarks/beside_old_ray.py --old-python old/bin/python cartpole-a2c cartpole-pg
    python benchmarks/beside_old_ray.py --plots folder    # pictures of what was recorded

Examples without workers may train on both sides `--at-once`, where each has a core; the record says
so.

Results go into `beside_old_ray.json`, with the return by step of each side, and as a table into the
guide (`migration_guide/removed_algorithms.md`). Speed is told by CPU time, of all processes of a
side: other work on the machine counts less there than on the clock, whose seconds are recorded.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import guide_tables
import yaml

HERE = Path(__file__).parent
EXAMPLES = HERE / "beside_old_ray"
RESULTS = HERE / "beside_old_ray.json"

SIDES = ("old", "ours")
OLD_RAY = "1.13.0"
#: The CPUs that Ray is told of: some examples want more workers than the machine has cores.
CPUS = 4
#: An iteration takes at least so long, so that the stop criteria are looked at equally often.
SECONDS_OF_AN_ITERATION = 1
#: As many iterations of a run are recorded.
POINTS = 40

COLUMNS = (
    *("example", "algorithm", "seed", "return (or after)"),
    *("steps: 1.13.0", "ours", "ratio"),
    *("steps per CPU second: 1.13.0", "ours", "ratio"),
)

Line = dict[str, Any]


def compare(name: str, pythons: dict[str, str], given: argparse.Namespace) -> dict[str, Any]:
    """Trains an example on both sides."""
    (spec,) = yaml.safe_load((EXAMPLES / f"{name}.yaml").read_text("utf-8")).values()
    changed = {"framework": "torch", "min_time_s_per_reporting": SECONDS_OF_AN_ITERATION}
    spec["config"] = {**spec["config"], **changed, "seed": given.seed}
    told = {"limit": given.limit, "cpus": CPUS, "legacy_ray": OLD_RAY, "episodes": given.episodes}
    specs = {side: {**spec, **told, "ours": side == "ours"} for side in SIDES}
    with ThreadPoolExecutor(len(SIDES) if given.at_once else 1) as pool:
        runs = dict(zip(SIDES, pool.map(_run, specs.values(), pythons.values()), strict=True))
    return {
        "example": name,
        "algorithm": spec["run"],
        "environment": spec["env"],
        "episodes": given.episodes,
        "seed": given.seed,
        "limit": given.limit,
        "at_once": given.at_once,
        "reward": spec["stop"].get("episode_reward_mean"),
        "steps": min(lines[-1]["steps"] for lines in runs.values()),
        "sides": {side: _told(lines, spec["stop"], runs) for side, lines in runs.items()},
    }


def _run(spec: dict[str, Any], python: str) -> list[Line]:
    """The lines that a side has written; one that fails stops the benchmark."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "RAY_USAGE_STATS_ENABLED": "0"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    if not spec["ours"]:
        environment.pop("PYTHONPATH", None)
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder, "told")
        command = [python, str(EXAMPLES / "side.py"), json.dumps(spec), str(told)]
        done = subprocess.run(
            command, env=environment, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        if done.returncode:
            sys.exit(f"{python} failed:\n{done.stdout.decode(errors='replace')}")
        return [json.loads(line) for line in told.read_text("utf-8").splitlines()]


def _told(lines: list[Line], stop: dict[str, Any], runs: dict[str, list[Line]]) -> dict[str, Any]:
    """What a side has done: until it reached the reward, and until as many steps as the other."""
    wanted, last = stop.get("episode_reward_mean"), lines[-1]
    reached = wanted is not None and last["reward"] is not None and last["reward"] >= wanted
    common = min(run[-1]["steps"] for run in runs.values())
    equal = [line for line in lines if line["steps"] <= common][-1:] or lines[:1]
    kept = [*lines[:: max(1, len(lines) // POINTS)], last]
    return {
        "ray": last["ray"],
        "reached_after": last["steps"] if reached else None,
        "steps": last["steps"],
        "seconds": last["seconds"],
        "steps_per_second": round(equal[0]["steps"] / equal[0]["seconds"], 1),
        "steps_per_cpu_second": round(equal[0]["steps"] / equal[0]["cpu_seconds"], 1),
        "reward_at_equal_steps": equal[0]["reward"],
        "curve": [[line["steps"], line["reward"]] for line in kept],
    }


def table(results: dict[str, Any]) -> str:
    """A row for each run."""
    head = "| " + " | ".join(COLUMNS) + " |\n|---|---|--:|---|" + "--:|" * (len(COLUMNS) - 4)
    rows = "".join(_row(result) for _, result in sorted(results.items()))
    return f"\n{head}\n{rows}"


def _row(result: dict[str, Any]) -> str:
    sides = [result["sides"][side] for side in SIDES]
    reached = [side["reached_after"] for side in sides]
    rates = [side["steps_per_cpu_second"] for side in sides]
    until = f"{result['reward']:g}"
    cells, ratio = [f"{steps:,}" if steps else "–" for steps in reached], "–"
    if all(reached):
        ratio = f"{reached[1] / reached[0]:.2f}"
    else:
        returns = [side["reward_at_equal_steps"] for side in sides]
        until += f" (at {result['steps']:,} steps)"
        told = [f"{value:.0f}" if value is not None else "none" for value in returns]
        cells = [f"{cell} ({value})" for cell, value in zip(cells, told, strict=True)]
    speeds = [f"{rate:,.0f}" for rate in rates]
    algorithm = result["algorithm"] + (", episodes" if result.get("episodes") else "")
    parts = [result["example"], algorithm, str(result["seed"]), until, *cells, ratio]
    return "| " + " | ".join([*parts, *speeds, f"{rates[1] / rates[0]:.2f}"]) + " |\n"


def write(results: dict[str, Any]) -> None:
    """Writes the record, and the table into the guide."""
    RESULTS.write_text(json.dumps(results, sort_keys=True).replace('}, "', '},\n"') + "\n", "utf-8")
    guide_tables.put("beside_old_ray", table(results))


def plot(results: dict[str, Any], folder: Path) -> None:
    """Draws the return by step, a picture for each run."""
    from matplotlib import pyplot

    folder.mkdir(parents=True, exist_ok=True)
    for key, result in results.items():
        figure, axes = pyplot.subplots(figsize=(5, 3))
        for told in result["sides"].values():
            axes.plot(*zip(*told["curve"], strict=True), label=f"Ray {told['ray']}")
        axes.set(xlabel="env steps", ylabel="mean return", title=key)
        axes.legend()
        figure.savefig(folder / f"{key}.png", bbox_inches="tight")
        pyplot.close(figure)


def main() -> None:
    """Compares the examples that were named, and writes the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="the files in beside_old_ray/, without .yaml")
    parser.add_argument("--old-python", help="the Python of an environment with Ray 1.13.0")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, default=240, help="seconds of CPU time a side")
    parser.add_argument("--episodes", action="store_true", help="replayed by our DQN or SAC")
    parser.add_argument("--at-once", action="store_true", help="both sides, on a core each")
    parser.add_argument("--plots", type=Path, help="a folder for pictures")
    given = parser.parse_args()
    if given.names and not given.old_python:
        parser.error("--old-python is needed to train")
    results = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    for name in given.names:
        pythons = {"old": given.old_python, "ours": sys.executable}
        result = compare(name, pythons, given)
        results[f"{name}{'-episodes' * given.episodes}-{given.seed}"] = result
        print(table({name: result}), flush=True)
        write(results)
    if given.plots:
        plot(results, given.plots)


if __name__ == "__main__":
    main()
