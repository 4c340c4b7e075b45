"""Trains old tuned examples with the real old Ray and with this package, one after the other.

Both sides have the same config and seed, and stop where the example stops or after `--limit`
seconds of CPU time; each process computes with one thread. `--old-python` is the Python of an
environment with Ray 1.13.0, and of another one with Ray 2.0.1 for the examples that want it::

    python benchmarks/beside_old_ray.py --old-python old/bin/python cartpole-a2c --seeds 0 1 2
    python benchmarks/beside_old_ray.py --old-python old/bin/python ray201/bin/python cartpole-crr
    python benchmarks/beside_old_ray.py    # the table anew, of what was recorded
    python benchmarks/beside_old_ray.py --plots picture.png    # and the returns by step

Examples without workers may train on both sides `--at-once`, where each has a core; the record says
so. Beside what Tune reads, an example may say

* `old_ray`: which Ray the old side has, 1.13.0 by default;
* `framework`: that of the old side, torch by default; ours is torch;
* `seconds`: how long an iteration takes at least;
* `data`: an experiment of the old Ray whose steps are recorded, for both sides to learn from.

Results go into `beside_old_ray.json`, with the return by step of each run and side, and as a table
with a row for all seeds of an example into the guide (`migration_guide/removed_algorithms.md`).
Speed is told by CPU time, of all processes of a side: other work on the machine counts less there
than on the clock, whose seconds are recorded.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from math import isfinite
from pathlib import Path
from typing import Any

import guide_tables
import yaml
from seeds import SIDES, Row, rows, told

HERE = Path(__file__).parent
EXAMPLES = HERE / "beside_old_ray"
RESULTS = HERE / "beside_old_ray.json"

OLD_RAY = "1.13.0"
#: The CPUs that Ray is told of: some examples want more workers than the machine has cores, and
#: what reads data for them waits for one more without an end.
CPUS = 8
#: An iteration takes at least so long, so that the stop criteria are looked at equally often.
SECONDS_OF_AN_ITERATION = 1
#: What a Ray calls that; 1.13.0's name, by default.
NAMES_OF_SECONDS = {"2.0.1": "min_time_s_per_iteration"}
RETURN = "episode_reward_mean"
#: So many panels of the picture stand side by side.
PANELS = 5
#: As many iterations of a run are recorded.
POINTS = 40

COLUMNS = (
    *("example", "algorithm", "seeds", "return (or after)"),
    *("steps: old Ray", "ours", "ratio"),
    *("steps per CPU second: old Ray", "ours", "ratio"),
)

Line = dict[str, Any]


def compare(name: str, seed: int, given: argparse.Namespace) -> dict[str, Any]:
    """Trains an example on both sides."""
    (spec,) = yaml.safe_load((EXAMPLES / f"{name}.yaml").read_text("utf-8")).values()
    spec = {"old_ray": OLD_RAY, "framework": "torch", "data": None, **spec}
    spec |= {"limit": given.limit, "episodes": given.episodes}
    pythons = {"old": given.old_pythons[spec["old_ray"]], "ours": sys.executable}
    spec["config"] = {**spec["config"], "seed": seed}
    with tempfile.TemporaryDirectory() as folder:
        if spec["data"]:
            _record({**spec, **spec["data"]}, pythons["old"], Path(folder))
            spec["config"]["input_config"] = {"paths": _only_file(Path(folder)), "format": "json"}
        specs = [_of_side(spec, side) for side in SIDES]
        with ThreadPoolExecutor(len(SIDES) if given.at_once else 1) as pool:
            runs = dict(zip(SIDES, pool.map(_run, specs, pythons.values()), strict=True))
    return {
        "example": name,
        "algorithm": spec["run"],
        "environment": spec["env"],
        "episodes": given.episodes,
        "seed": seed,
        "limit": given.limit,
        "at_once": given.at_once,
        "reward": spec["stop"].get(_return_of(spec)),
        "steps": min(lines[-1]["steps"] for lines in runs.values()),
        "sides": {side: _told(lines, spec, runs) for side, lines in runs.items()},
    }


def _of_side(spec: dict[str, Any], side: str) -> dict[str, Any]:
    seconds = NAMES_OF_SECONDS.get(spec["old_ray"], "min_time_s_per_reporting")
    changed = {
        "framework": spec["framework"] if side == "old" else "torch",
        seconds: spec.get("seconds", SECONDS_OF_AN_ITERATION),
    }
    more = {"ours": side == "ours", "cpus": CPUS, "return": _return_of(spec)}
    return {**spec, **more, "config": {**spec["config"], **changed}}


def _return_of(spec: dict[str, Any]) -> str:
    """Where results have the return at which an example stops."""
    return next((key for key in spec["stop"] if key.endswith(RETURN)), RETURN)


def _record(spec: dict[str, Any], python: str, folder: Path) -> None:
    """Lets the old Ray write the steps of an experiment into a folder."""
    written = {"output": str(folder), "output_compress_columns": []}
    _run(_of_side({**spec, "config": {**spec["config"], **written}}, "old"), python)


def _only_file(folder: Path) -> str:
    (file,) = folder.iterdir()
    return str(file)


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


def _told(lines: list[Line], spec: dict[str, Any], runs: dict[str, list[Line]]) -> dict[str, Any]:
    """What a side has done: until it reached the reward, and until as many steps as the other."""
    wanted, last = spec["stop"].get(_return_of(spec)), lines[-1]
    reached = wanted is not None and last["reward"] is not None and last["reward"] >= wanted
    common = min(run[-1]["steps"] for run in runs.values())
    equal = [line for line in lines if line["steps"] <= common][-1:] or lines[:1]
    # In its first iteration a side begins; how fast it is, a later one tells.
    timed = equal[0] if equal[0] is not lines[0] else last
    kept = [*lines[:: max(1, len(lines) // POINTS)], last]
    return {
        "ray": last["ray"],
        "reached_after": last["steps"] if reached else None,
        "steps": last["steps"],
        "seconds": last["seconds"],
        "steps_per_second": round(timed["steps"] / timed["seconds"], 1),
        "steps_per_cpu_second": round(timed["steps"] / timed["cpu_seconds"], 1),
        "reward_at_equal_steps": equal[0]["reward"],
        "curve": [[line["steps"], line["reward"]] for line in kept],
    }


def table(results: dict[str, Any]) -> str:
    """A row for each example."""
    head = "| " + " | ".join(COLUMNS) + " |\n|---|---|--:|---|" + "--:|" * (len(COLUMNS) - 4)
    return f"\n{head}\n" + "".join(map(_line, rows(results.values())))


def _line(row: Row) -> str:
    until = "–" if row.wanted is None else f"{row.wanted:g}"
    cells, ratio = [_steps(row, side) for side in SIDES], "–"
    if row.learning is None:
        until += f" (at {row.steps:,} steps)"
        returns = [told(row.returns[side]) for side in SIDES]
        cells = [f"{cell} ({value})" for cell, value in zip(cells, returns, strict=True)]
    else:
        ratio = f"{row.learning:.2f}"
    algorithm = row.algorithm + ", episodes" * row.episodes
    if row.ray != OLD_RAY:
        algorithm += f", Ray {row.ray}"
    parts = [row.example, algorithm, ", ".join(map(str, row.seeds)), until, *cells, ratio]
    speeds = [f"{row.speeds[side]:,.0f}" for side in SIDES]
    return "| " + " | ".join([*parts, *speeds, f"{row.speed:.2f}"]) + " |\n"


def _steps(row: Row, side: str) -> str:
    cell = f"{row.needed[side]:,.0f}" if isfinite(row.needed[side]) else "–"
    if 0 < row.arrived[side] < len(row.seeds):
        cell += f", {row.arrived[side]} of {len(row.seeds)}"
    return cell


def write(results: dict[str, Any]) -> None:
    """Writes the record, and the table into the guide."""
    RESULTS.write_text(json.dumps(results, sort_keys=True).replace('}, "', '},\n"') + "\n", "utf-8")
    guide_tables.put("beside_old_ray", table(results))


def plot(results: dict[str, Any], file: Path) -> None:
    """Draws the return by step of every run, a panel for each example, into one picture."""
    from matplotlib import pyplot

    panels: dict[str, list[dict[str, Any]]] = {}
    for result in results.values():
        panels.setdefault(result["example"] + ", episodes" * result["episodes"], []).append(result)
    lines = -(-len(panels) // PANELS)
    figure, axes = pyplot.subplots(
        lines, PANELS, figsize=(2.4 * PANELS, 1.8 * lines), layout="constrained"
    )
    for axis in axes.flat[len(panels) :]:
        axis.set_axis_off()
    for axis, (name, runs) in zip(axes.flat, sorted(panels.items()), strict=False):
        axis.set_title(name, fontsize=8)
        axis.tick_params(labelsize=6)
        axis.xaxis.set_major_formatter(lambda steps, _: f"{steps / 1000:g}k")
        for run in runs:
            for side, color in zip(SIDES, ("tab:gray", "tab:blue"), strict=True):
                points = [point for point in run["sides"][side]["curve"] if point[1] is not None]
                axis.plot(*zip(*points, strict=True), color=color, linewidth=1)
    figure.supxlabel("env steps", fontsize=8)
    figure.supylabel("mean return: the old Ray gray, ours blue", fontsize=8)
    figure.savefig(file, dpi=100)
    pyplot.close(figure)


def _ray_of(python: str) -> str:
    code = "from importlib.metadata import version; print(version('ray'))"
    return subprocess.check_output([python, "-c", code], text=True).strip()


def main() -> None:
    """Compares the examples that were named, and writes the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="the files in beside_old_ray/, without .yaml")
    parser.add_argument("--old-python", nargs="*", default=(), help="of environments with old Rays")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--limit", type=float, default=240, help="seconds of CPU time a side")
    parser.add_argument("--episodes", action="store_true", help="replayed by our DQN or SAC")
    parser.add_argument("--at-once", action="store_true", help="both sides, on a core each")
    parser.add_argument("--plots", type=Path, help="the file of a picture")
    given = parser.parse_args()
    given.old_pythons = {_ray_of(python): python for python in given.old_python}
    if given.names and not given.old_pythons:
        parser.error("--old-python is needed to train")
    results = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    for name, seed in product(given.names, given.seeds):
        key = f"{name}{'-episodes' * given.episodes}-{seed}"
        results[key] = compare(name, seed, given)
        print(table({key: results[key]}), flush=True)
        write(results)
    if not given.names:
        write(results)
    if given.plots:
        plot(results, given.plots)


if __name__ == "__main__":
    main()
