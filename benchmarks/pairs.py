"""Two commands against each other, as whole processes.

Each repetition runs A, then B, so that whatever else the machine does meets both. What counts is
the ratio of the medians of one run; the seconds are only there to see what it is a ratio of.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Command = Sequence[str]


@dataclass(frozen=True)
class Contender:
    """One of the two.

    Attributes:
        name: What the result calls it.
        command: What is run.
        prepare: Called before each run; not timed.
        worked: Whether a run has done its work; exit codes alone can't tell a crash of Python
            from "done, with findings", both are 1.
    """

    name: str
    command: Command
    prepare: Callable[[], None] = lambda: None
    worked: Callable[[str], bool] = lambda output: True  # noqa: ARG005

    def seconds(self) -> float:
        """How long one run takes; a run that fails stops the benchmark."""
        self.prepare()
        # Python compiles what it imports once; a machine that forbids it would do so in each run.
        environment = dict(os.environ)
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        start = time.perf_counter()
        done = subprocess.run(
            self.command, env=environment, capture_output=True, text=True, check=False
        )
        seconds = time.perf_counter() - start
        if done.returncode not in (0, 1) or not self.worked(done.stdout):
            sys.exit(f"{self.name} failed:\n{done.stdout}\n{done.stderr}")
        return seconds


def compare(ours: Contender, theirs: Contender, repetitions: int) -> float:
    """Runs both in turn, prints the medians and returns how many times faster `ours` is."""
    for contender in (ours, theirs):  # fills the caches of both
        contender.seconds()
    times = [(ours.seconds(), theirs.seconds()) for _ in range(repetitions)]
    print(f"{repetitions} runs each, in turn, on {os.cpu_count()} cores; median (fastest–slowest)")
    medians = []
    for contender, runs in zip((ours, theirs), zip(*times, strict=True), strict=True):
        medians.append(statistics.median(runs))
        print(f"  {contender.name:<42} {medians[-1]:7.2f} s ({min(runs):.2f}–{max(runs):.2f})")
    ratio = medians[1] / medians[0]
    print(f"  ratio: {ratio:.1f}")
    return ratio
