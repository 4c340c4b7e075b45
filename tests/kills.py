"""Kills conversions at random moments, and looks at what they leave.

`python -m tests.kills 200` kills 200 with and 200 without `--overwrite`. The same target is
written again and again, from two checkpoints in turn; whatever lies there must be one of the two,
whole. With `--overwrite` there is always one. What a kill leaves beside it, the next run removes.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from rllib_compat import convert
from tests.legacy.cases import find
from tests.trees import digest_tree

OLD = next(c for c in find(ray="0.8.5") if c.variant == "worker1")
OTHER = next(c for c in find(ray="1.13.0", framework="tf2") if c.variant == "freelogstd")


@dataclass
class Found:
    """What the kills have shown.

    Attributes:
        killed: How many conversions died before they had ended.
        half: How often the target was neither of the two checkpoints.
        lost: How often there was no target, though one had been there.
        left: How many files lay beside the target after the last run, which nobody killed.
    """

    killed: int = 0
    half: int = 0
    lost: int = 0
    left: int = 0


def run(kills: int, folder: Path, *, overwrite: bool) -> Found:
    """Converts into one target until so many conversions were killed (or five times as many)."""
    whole = []
    started = time.monotonic()
    for number, case in enumerate((OLD, OTHER)):
        _convert(case, folder / f"whole{number}", overwrite=False)
        whole.append(digest_tree(folder / f"whole{number}"))
    longest = (time.monotonic() - started) / 2 * 1.2
    work, found, chance = folder / "work", Found(), random.Random(0)
    work.mkdir()
    target = work / "new"
    if overwrite:
        shutil.copytree(folder / "whole0", target)
    for number in range(5 * kills):
        if found.killed == kills:
            break
        if not overwrite and target.exists():
            shutil.rmtree(target)
        child = os.fork()
        if child == 0:
            try:
                _convert((OLD, OTHER)[number % 2], target, overwrite=overwrite)
            finally:
                os._exit(0)
        time.sleep(chance.uniform(0, longest))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        found.killed += os.WIFSIGNALED(status)
        if not os.WIFSIGNALED(status):
            longest *= 0.8  # it was faster than that
        if not target.exists():
            found.lost += overwrite
        elif digest_tree(target) not in whole:
            found.half += 1
    _convert(OLD, target, overwrite=True)
    found.half += digest_tree(target) not in whole
    found.left = len(list(work.iterdir())) - 1
    return found


def _convert(case, target: Path, *, overwrite: bool) -> None:
    convert(case.checkpoint, target, to="msgpack", inputs=5, overwrite=overwrite)


def main() -> None:
    """Prints what so many kills have shown."""
    for overwrite in (False, True):
        with tempfile.TemporaryDirectory() as folder:
            shown = run(int(sys.argv[1]), Path(folder), overwrite=overwrite)
            print(f"{'with' if overwrite else 'without'} --overwrite: {shown}")


if __name__ == "__main__":
    main()
