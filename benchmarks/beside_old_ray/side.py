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
        from rllib_compat import Trainer, activate

        activate()  # the environments of the examples stand elsewhere today
        return Trainer(
            spec["config"],
            spec["env"],
            algorithm=spec["run"],
            legacy_ray=spec["legacy_ray"],
            replay_columns=False if spec["episodes"] else None,
        )
    from ray.rllib.agents.registry import get_trainer_class

    return get_trainer_class(spec["run"])(spec["config"], spec["env"])


def cpu_seconds() -> float:
    """What this process and those that it has started have computed: other work does not count."""
    import psutil  # Ray brings it along

    this = psutil.Process()
    times = [process.cpu_times() for process in (this, *this.children(recursive=True))]
    return float(sum(time.user + time.system for time in times))


def main() -> None:
    """Trains until a stop criterion is met or the time is over."""
    spec, seconds, computed = json.loads(sys.argv[1]), 0.0, 0.0
    ray.init(num_cpus=spec["cpus"], include_dashboard=False, log_to_driver=False)
    trainer, started = trainer_of(spec), cpu_seconds()
    with Path(sys.argv[2]).open("w", encoding="utf-8") as told:
        while computed < spec["limit"]:
            begin = time.perf_counter()
            result = trainer.train()
            seconds += time.perf_counter() - begin
            computed = cpu_seconds() - started
            reward = float(result.get("episode_reward_mean", nan))
            line = {
                "steps": int(result["timesteps_total"]),  # ARS and ES count with numpy
                "reward": None if isnan(reward) else round(reward, 2),
                "seconds": round(seconds, 2),
                "cpu_seconds": round(computed, 2),
                "ray": ray.__version__,
            }
            told.write(json.dumps(line) + "\n")
            told.flush()
            if any(result.get(key, nan) >= value for key, value in spec["stop"].items()):
                break


if __name__ == "__main__":
    main()
