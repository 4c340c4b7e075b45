"""Trains one experiment with the RLlib of this Python; writes a line of JSON for each iteration.

Run by `benchmarks/beside_old_ray.py`, with today's Python and with that of the old Ray: what is
called is the old Trainer on both sides.
"""

from __future__ import annotations

import json
import sys
import time
from math import isnan, nan
from pathlib import Path
from typing import Any

import ray


def trainer_of(spec: dict[str, Any]) -> Any:
    """The Trainer of an experiment: that of this package, or of the old Ray itself."""
    if spec["ours"]:
        from rllib_compat import Trainer

        return Trainer(
            spec["config"],
            spec["env"],
            algorithm=spec["run"],
            legacy_ray=spec["old_ray"],
            replay_columns=False if spec["episodes"] else None,
        )
    import ray.rllib  # noqa: F401  # it tells the registry of its algorithms
    from ray.tune.registry import get_trainable_cls

    return get_trainable_cls(spec["run"])(spec["config"], spec["env"])


def value_of(result: dict[str, Any], key: str) -> float:
    """What stands at `a/b` in a result; NaN if nothing does."""
    found: Any = result
    for part in key.split("/"):
        found = found.get(part, {})
    return nan if found in ({}, None) else float(found)


def cpu_seconds() -> float:
    """What this process and those that it has started have computed: other work does not count."""
    import psutil  # Ray brings it along

    this = psutil.Process()
    times = [process.cpu_times() for process in (this, *this.children(recursive=True))]
    return float(sum(time.user + time.system for time in times))


def main() -> None:
    """Trains until a stop criterion is met or the time is over."""
    spec, seconds, computed = json.loads(sys.argv[1]), 0.0, 0.0
    if spec["ours"]:
        from rllib_compat import activate

        activate()  # the environments of the examples stand elsewhere today, in workers too
    ray.init(num_cpus=spec["cpus"], include_dashboard=False, log_to_driver=False)
    trainer, started = trainer_of(spec), cpu_seconds()
    with Path(sys.argv[2]).open("w", encoding="utf-8") as told:
        while computed < spec["limit"]:
            begin = time.perf_counter()
            result = trainer.train()
            seconds += time.perf_counter() - begin
            computed = cpu_seconds() - started
            reward = value_of(result, spec["return"])
            line = {
                "steps": int(result["timesteps_total"]),  # ARS and ES count with numpy
                "reward": None if isnan(reward) else round(reward, 2),
                "seconds": round(seconds, 2),
                "cpu_seconds": round(computed, 2),
                "ray": ray.__version__,
            }
            told.write(json.dumps(line) + "\n")
            told.flush()
            if any(value_of(result, key) >= value for key, value in spec["stop"].items()):
                break


if __name__ == "__main__":
    main()
