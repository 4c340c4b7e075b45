"""`load_policy` without Ray: one action of a CartPole policy, and loading it, against numpy.

Imports and whole processes are compared in turn with `import numpy`, which all of them need.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import time
from pathlib import Path

import numpy as np
from pairs import Contender, compare

import rllib_compat

DEFAULT = Path(__file__).parents[1] / "rllib_compat/demo_data/checkpoint_2"
SPACES = {"observation_space": "Box(4,)", "action_space": "Discrete(2)"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint", nargs="?", type=Path, default=DEFAULT)
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--actions", type=int, default=20_000)
    options = parser.parse_args()
    microseconds_per_action(options.checkpoint, options.actions)
    python, numpy = sys.executable, [sys.executable, "-c", "import numpy"]
    cli = shutil.which("rllib-compat", path=Path(python).parent) or "rllib-compat"
    found = f"{str(options.checkpoint)!r}, **{SPACES}"
    load = f"from rllib_compat import load_policy; load_policy({found})"
    for name, command in (
        ("import rllib_compat", [python, "-c", "import rllib_compat"]),
        ("from rllib_compat import load_policy", [python, "-c", load.partition(";")[0]]),
        ("load_policy(…)", [python, "-c", load]),
        ("rllib-compat inspect", [cli, "inspect", str(options.checkpoint)]),
    ):
        ratio = compare(
            Contender(name, command), Contender("import numpy", numpy), options.repetitions
        )
        print(f"  {1 / ratio:.2f} times `import numpy`")


def microseconds_per_action(checkpoint: Path, count: int) -> None:
    policy = rllib_compat.load_policy(checkpoint, **SPACES)
    observations = np.random.default_rng(0).normal(size=(count, 4)).astype(np.float32)
    times = []
    for observation in observations:
        start = time.perf_counter()
        policy.compute_single_action(observation)
        times.append(time.perf_counter() - start)
    print(f"{policy.network.summary}: one action takes {statistics.median(times) * 1e6:.0f} µs")
    start = time.perf_counter()
    policy.compute_actions(observations, full_fetch=False)
    batch = (time.perf_counter() - start) / count
    print(f"  in a batch of {count}: {batch * 1e6:.2f} µs")


if __name__ == "__main__":
    main()
