"""Breaks the code in one place at a time, and counts which breaks the tests notice.

    python -m tests.mutation [--only WORD] [--jobs 2]

The breaks are those of `mutants.py`: one line each, of the kind that a tired person writes. Each is
made in a copy of the repository, and the tests named beside it have to fail there. What none of
them notices is printed; the exit code is 1 where fewer than nine in ten are noticed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

import click

from tests.mutation.mutants import MUTANTS, Mutant

ROOT = Path(__file__).parents[2]
ENOUGH = 0.9

#: Seconds after which a break counts as noticed: the tests hang, and they have time limits.
TOO_LONG = 300

#: What pytest says when tests failed. Any other number means that they did not run.
FAILED = 1


def copy_of_the_repository(folder: Path) -> Path:
    """Copies what the tests need, once for each job."""
    copy = folder / "repository"
    hidden = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "build", "dist")
    shutil.copytree(ROOT, copy, ignore=hidden, symlinks=True)
    return copy


def is_noticed(mutant: Mutant, repository: Path) -> bool:
    """Whether the tests fail when the break is in."""
    path = repository / mutant.file
    original = path.read_text()
    path.write_text(mutant.applied(original))
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    environ = {**os.environ, "PYTHONPATH": str(repository), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        ran = subprocess.run(
            [*command, *mutant.tests],
            cwd=repository,
            env=environ,
            capture_output=True,
            text=True,
            timeout=TOO_LONG,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return True
    finally:
        path.write_text(original)
    if ran.returncode not in (0, FAILED):
        raise click.ClickException(f"{mutant.breaks}: the tests did not run\n{ran.stdout[-2000:]}")
    return ran.returncode == FAILED


@click.command()
@click.option("--only", default="", help="Only breaks of files whose path has this in it.")
@click.option("--jobs", default=2, show_default=True, help="How many copies are tested at once.")
def main(only: str, jobs: int) -> None:
    """Breaks the code in one place at a time, and counts which breaks the tests notice."""
    chosen = [mutant for mutant in MUTANTS if only in mutant.file]
    began = time.monotonic()
    copies: SimpleQueue[Path] = SimpleQueue()

    def run(mutant: Mutant) -> bool:
        copy = copies.get()
        try:
            noticed = is_noticed(mutant, copy)
        finally:
            copies.put(copy)
        click.echo(f"{'noticed' if noticed else 'MISSED ':8} {mutant.file}: {mutant.breaks}")
        return noticed

    with tempfile.TemporaryDirectory() as folder:
        for number in range(jobs):
            copies.put(copy_of_the_repository(Path(folder) / str(number)))
        with ThreadPoolExecutor(jobs) as pool:
            noticed = sum(pool.map(run, chosen))
    minutes = (time.monotonic() - began) / 60
    click.echo(f"{noticed} of {len(chosen)} breaks were noticed, in {minutes:.0f} minutes")
    if noticed < ENOUGH * len(chosen):
        sys.exit(1)


if __name__ == "__main__":
    main()
