"""Breaks the code in one place at a time, and counts which breaks the tests notice.

    python -m tests.mutation [--only WORD] [--left] [--jobs 2] [--write]

The breaks are those of `mutants.diff`: one line each, of the kind that a tired person writes. Each
is made in a copy of the repository, and of the tests named beside it those that a push runs have to
fail there. What none of them notices is printed; the exit code is 1 where fewer than nine in ten
are noticed.

`--write` puts what came of each break into `results.json`, with the commit and the day. A run of a
part replaces the rows of that part; rows of breaks that are gone are taken out. `--left` tries only
those that were not noticed last time, or never tried.
"""

from __future__ import annotations

import datetime
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import click

from tests.mutation.mutants import MUTANTS, Mutant

ROOT = Path(__file__).parents[2]
RESULTS = Path(__file__).with_name("results.json")
ENOUGH = 0.9

#: Seconds after which a break counts as noticed: the tests hang, and they have time limits.
TOO_LONG = 600

#: What pytest says when tests failed. Any other number means that they did not run.
FAILED = 1


def copy_of_the_repository(folder: Path) -> Path:
    """Copies what the tests need, once for each job (compiled files, too: they save time)."""
    copy = folder / "repository"
    hidden = shutil.ignore_patterns(".*", "*.egg-info", "build", "dist")
    shutil.copytree(ROOT, copy, ignore=hidden, symlinks=True)
    return copy


def is_noticed(mutant: Mutant, repository: Path) -> bool:
    """Whether the tests fail when the break is in."""
    path = repository / mutant.file
    original, times = path.read_text(), path.stat()
    path.write_text(mutant.applied(original))
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    command += ["-m", "not nightly"]
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
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    if ran.returncode not in (0, FAILED):
        raise click.ClickException(f"{mutant.breaks}: the tests did not run\n{ran.stdout[-2000:]}")
    return ran.returncode == FAILED


def outcomes(chosen: list[Mutant], jobs: int) -> Iterator[tuple[Mutant, bool]]:
    """Each break, and whether it was noticed."""
    copies: SimpleQueue[Path] = SimpleQueue()

    def run(mutant: Mutant) -> bool:
        copy = copies.get()
        try:
            return is_noticed(mutant, copy)
        finally:
            copies.put(copy)

    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(jobs) as pool:
        for number in range(jobs):
            copies.put(copy_of_the_repository(Path(folder) / str(number)))
        yield from zip(chosen, pool.map(run, chosen), strict=True)


def key(mutant: Mutant) -> str:
    """The name of a break in the results."""
    return f"{mutant.file}: {mutant.breaks}"


def recorded() -> dict[str, dict[str, Any]]:
    """What was written last, by the breaks' names."""
    if not RESULTS.exists():
        return {}
    rows: dict[str, dict[str, Any]] = json.loads(RESULTS.read_text())["breaks"]
    return rows


def write(new: dict[str, dict[str, Any]]) -> None:
    """Puts new rows among those that were written before, in the order of the list."""
    rows = recorded() | new
    rows = {name: rows[name] for name in map(key, MUTANTS) if name in rows}
    noticed = sum(row["noticed"] for row in rows.values())
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items())
    RESULTS.write_text(
        f'{{\n "noticed": {noticed},\n "measured": {len(rows)},\n "breaks": {{\n{lines}\n }}\n}}\n'
    )


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()


@click.command()
@click.option("--only", default="", help="Only breaks whose file or name has this in it.")
@click.option("--left", is_flag=True, help="Only breaks that were not noticed last time.")
@click.option("--jobs", default=2, show_default=True, help="How many copies are tested at once.")
@click.option("--write", "keep", is_flag=True, help=f"Record what comes of it in {RESULTS.name}.")
def main(only: str, left: bool, jobs: int, keep: bool) -> None:
    """Breaks the code in one place at a time, and counts which breaks the tests notice."""
    chosen = [mutant for mutant in MUTANTS if only in key(mutant)]
    if left:
        done = {name for name, row in recorded().items() if row["noticed"]}
        chosen = [mutant for mutant in chosen if key(mutant) not in done]
    began = time.monotonic()
    made = {"commit": _commit(), "date": str(datetime.date.today())} if keep else {}
    count = 0
    for mutant, noticed in outcomes(chosen, jobs):
        count += noticed
        click.echo(f"{'noticed' if noticed else 'MISSED ':8} {key(mutant)}")
        if keep:
            write({key(mutant): {"noticed": noticed, **made}})
    minutes = (time.monotonic() - began) / 60
    click.echo(f"{count} of {len(chosen)} breaks were noticed, in {minutes:.0f} minutes")
    if count < ENOUGH * len(chosen):
        sys.exit(1)


if __name__ == "__main__":
    main()
