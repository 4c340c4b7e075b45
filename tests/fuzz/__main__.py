"""Feeds damaged and hostile files to the doors of the package.

    python -m tests.fuzz --mutants 100000 --seed 1
    python -m tests.fuzz --mutants 10000 --seed 2 --door plot

It prints counts as JSON and ends with 1 if anything but a `CompatError` was raised, anything was
run, imported, or written where it must not be, a mutant took longer than 5 seconds of the
processor, or memory grew by more than 20 times its size and 100 MB.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from tests.fuzz import seeds
from tests.fuzz.doors import DOORS
from tests.fuzz.run import mutant, peak, run


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mutants", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="the number of the first mutant")
    parser.add_argument("--door", choices=DOORS, help="the only door that is tried")
    parser.add_argument("--keep", type=Path, help="write mutant --first to this folder, and end")
    given = parser.parse_args()
    if given.keep:
        seeds.lay_down(mutant(given.seed, given.first, given.door)[0], given.keep)
        return 0
    start = time.monotonic()
    figures = run(given.mutants, given.seed, given.first, given.door)
    told = {**vars(figures), "seconds": round(time.monotonic() - start, 1), "peak": peak()}
    print(json.dumps(told, indent=1))
    return not figures.is_clean


if __name__ == "__main__":
    sys.exit(main())
