"""Trains Ray's own tuned examples of old to their stop criteria, and writes down what it took.

`python -m benchmarks.tuned_examples [NAME …]` runs those (all, without a name) with
`rllib-compat train -f`, with the defaults of their Ray, and writes the results into
`benchmarks/tuned_examples.json` and the table in `benchmarks/tuned_examples.md`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
EXAMPLES = HERE / "tuned_examples"
RESULTS = HERE / "tuned_examples.json"
TABLE = HERE / "tuned_examples.md"

# What an example that learns from records is learned from: the options of `train` that its file
# tells people to make them with. Where they lie is part of the example.
RECORDED = {
    "1.0.1-MARWIL-cartpole-marwil": {
        "--run": "PPO",
        "--env": "CartPole-v0",
        "--stop": '{"timesteps_total": 50000}',
        "--config": '{"output": "/tmp/out", "batch_mode": "complete_episodes"}',
    },
}

# The CPUs that Ray is told of: the examples want a few workers, whatever the machine has.
CPUS = 4

HEAD = """# Tuned examples

Experiments that old Rays shipped to show that they learn, trained by `rllib-compat train -f` with
`--legacy-ray` of their own Ray. An example has done what it was made for if the reward is what
stopped it. Written by `python -m benchmarks.tuned_examples`.

| Ray | algorithm | example | environment | stopped by | env steps | reward | seconds | on Ray |
|---|---|---|---|---|--:|--:|--:|---|
"""


def train(example: Path) -> dict[str, Any]:
    """Trains one example to its own stop criterion."""
    ray, algorithm, name = example.stem.split("-", 2)
    if example.stem in RECORDED:
        _run([part for option in RECORDED[example.stem].items() for part in option], ray)
    told = _run(["-f", str(example)], ray)
    (trial,) = told["trials"]
    return {
        "ray": ray,
        "algorithm": algorithm,
        "example": name,
        "environment": told["experiments"][0]["spec"]["config"]["env"],
        "stopped_by": trial["stopped_by"] or trial["status"],
        "steps": trial["timesteps_total"],
        "reward": trial["episode_reward_mean"],
        "seconds": trial["time_total_s"],
        "on": _installed(),
    }


def _run(options: list[str], ray: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "rllib_compat", "train", *options, "--json"]
        command += ["--legacy-ray", ray, "--ray-num-cpus", str(CPUS), "--local-dir", folder]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=False, text=True)
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def _installed() -> str:
    import ray

    return str(ray.__version__)


def write(results: dict[str, Any]) -> None:
    """Writes results and table."""
    RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n", "utf-8")
    rows = [
        f"| {r['ray']} | {r['algorithm']} | {r['example']} | {r['environment']} "
        f"| {r['stopped_by']} "
        f"| {r['steps']:,} | {r['reward']:.1f} | {r['seconds']:,.0f} | {r['on']} |\n"
        for _, r in sorted(results.items())
    ]
    TABLE.write_text(HEAD + "".join(rows), "utf-8")


def main(names: list[str]) -> None:
    """Trains the examples of these names, or all, one after the other."""
    for example in sorted(EXAMPLES.glob("*.yaml")):
        if names and example.stem not in names:
            continue
        result = train(example)
        print(example.stem, result, flush=True)
        known = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
        write({**known, example.stem: result})


if __name__ == "__main__":
    main(sys.argv[1:])
