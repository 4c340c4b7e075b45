"""Writes the guide's page on Ray releases from what runs have left.

    python -m tests.ray_releases.page [REPORT.xml …]

Reports are pytest's junit files, one for each run (`.tox/reports/ray260.fast.xml`). What they say
goes into `runs.json`, which keeps the last run of each; the page is made of that, of `travels.json`
and of `api.json`.
"""

from __future__ import annotations

import json
import re
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

from tests.ray_releases.record_all import API, HERE, age
from tests.ray_releases.travel import GOES_ON

RUNS = HERE / "runs.json"
TRAVELS = HERE / "travels.json"
PAGE = HERE.parents[1] / "migration_guide" / "ray_releases.md"

TOP = """\
# Ray releases

<!-- Written by `python -m tests.ray_releases.page`; do not edit. -->

rllib-compat works with Ray 2.40 and later. These tables are made by the runs themselves.

## What was run

`fast` is what starts no Ray, `integration` what does (`pytest -m ray`), and `subset` the part of it
that touches Ray most (`pytest -m matrix`): converting, restoring, training on, the trainer,
callbacks, Tune. All in two processes.

| Ray | suite | passed | failed | skipped | minutes |
|---|---|---:|---:|---:|---:|
"""

TRAVELLED = """
## Converted here, loaded there

Each row is the Ray that a checkpoint was converted with, each column the Ray that restored it
(`Algorithm.from_checkpoint`), found the same weights in it, and trained an iteration (✓). Where Ray
could not, for the reason below, `rllib-compat convert` made a tree there with which it did (c).
"""

CHANGED = """
## What changed when

How many names came, went or changed with each release, of those that this package builds on:
arguments and defaults of configs, methods and attributes of classes, constants, connectors,
modules, reductions of metrics. `tests/ray_releases/api.json` has them all, recorded from the
releases by `python -m tests.ray_releases.record_all`.
"""


def take(report: Path, runs: dict[str, Any]) -> None:
    """Adds a junit report; its name says the release and the suite."""
    found = re.fullmatch(r"ray2(\d\d)[^.]*\.(fast|integration|subset)", report.stem)
    if found is None:
        raise SystemExit(f"{report}: not a report of a tox environment for a Ray")
    # A file of our own pytest run, not one from elsewhere.
    suites = list(ElementTree.parse(report).getroot().iter("testsuite"))
    total = {key: sum(int(s.get(key, 0)) for s in suites) for key in _COUNTED}
    failed = total["failures"] + total["errors"]
    runs[f"2.{found[1]} {found[2]}"] = {
        "passed": total["tests"] - failed - total["skipped"],
        "failed": failed,
        "skipped": total["skipped"],
        "minutes": round(sum(float(s.get("time", 0)) for s in suites) / 60, 1),
    }


_COLUMNS = ("passed", "failed", "skipped", "minutes")
_COUNTED = ("tests", "failures", "errors", "skipped")


def page(runs: dict[str, Any], travels: dict[str, Any], changes: dict[str, Any]) -> str:
    """The whole page."""
    text = TOP
    for key in sorted(runs, key=lambda k: (age(k.split()[0]), k)):
        text += row(*key.split(), *(runs[key][column] for column in _COLUMNS))
    if travels:
        text += TRAVELLED
    for name, writers in travels.items():
        text += f"\n**{name}**\n\n" + matrix(writers)
    return text + CHANGED + "\n" + changes_by_release(changes)


def matrix(writers: dict[str, dict[str, list[str]]]) -> str:
    """A triangle of writers and readers; what is not "goes on" is explained below it."""
    readers = sorted({reader for by in writers.values() for reader in by}, key=age)
    text = row("", *readers) + row("---", *("---" for _ in readers))
    notes: list[str] = []
    for writer in sorted(writers, key=age):
        cells = []
        for reader in readers:
            outcomes = writers[writer].get(reader, [])
            cells.append(" ".join(_mark(*outcome, notes) for outcome in enumerate(outcomes)))
        text += row(writer, *cells)
    return text + "".join(f"\n({i}) `{note}`\n" for i, note in enumerate(notes, 1))


def _mark(nth: int, outcome: str, notes: list[str]) -> str:
    """A mark for the outcome of a tree as it is (0) or converted (1)."""
    if outcome == GOES_ON:
        return "✓c"[nth]
    if outcome not in notes:
        notes.append(outcome)
    return f"({notes.index(outcome) + 1})"


def changes_by_release(changes: dict[str, Any]) -> str:
    """How many names changed in each section and release."""
    sections = list(changes)
    releases = sorted({r for s in changes.values() for v in s.values() for r in v}, key=age)[1:]
    text = row("Ray", *sections) + row("---", *("---:" for _ in sections))
    for release in releases:
        counts = [sum(release in v for v in changes[s].values()) for s in sections]
        text += row(release, *counts)
    return text


def row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |\n"


def read(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def main(reports: list[str]) -> None:
    runs = read(RUNS)
    for report in reports:
        take(Path(report), runs)
    RUNS.write_text(json.dumps(runs, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    PAGE.write_text(page(runs, read(TRAVELS), read(API)), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
