"""Records what each Ray release offers, and from that what changed when.

    python -m tests.ray_releases.record_all            # all minor releases: some 10 minutes
    python -m tests.ray_releases.record_all 2.61       # a new one; the others stay as recorded

Each release is installed alone into a folder that is removed afterwards; everything else comes from
the Python that runs this, which is that of an environment with Ray. Two files are written:
`api.json` holds, for each name that any release has, the releases in which its value changed
(null: gone); `rllib_compat/ray_versions/settings.json` is the part that the package reads.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
API = HERE / "api.json"
SETTINGS = HERE.parents[1] / "rllib_compat" / "ray_versions" / "settings.json"
RELEASES = [f"2.{minor}" for minor in range(40, 61)]

Record = dict[str, dict[str, str]]
#: Section, name, release: the value that it has from that release on.
Changes = dict[str, dict[str, dict[str, str | None]]]


def record(release: str) -> Record:
    """What a release offers; it is installed for that, and removed."""
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", folder]
        subprocess.run([*pip, f"ray=={release}.*"], check=True)
        done = subprocess.run(
            [sys.executable, HERE / "record.py"],
            check=True,
            capture_output=True,
            env={**os.environ, "PYTHONPATH": folder},
        )
    found: Record = json.loads(done.stdout)
    return found


def unfold(changes: Changes) -> dict[str, Record]:
    """The record of each release, from the changes between them."""
    releases = sorted({r for names in changes.values() for v in names.values() for r in v}, key=age)
    records: dict[str, Record] = {}
    for release in releases:
        records[release] = {section: {} for section in changes}
        for section, names in changes.items():
            for name, values in names.items():
                known = [values[r] for r in releases if r in values and age(r) <= age(release)]
                if known and known[-1] is not None:
                    records[release][section][name] = known[-1]
    return records


def fold(records: dict[str, Record]) -> Changes:
    """The changes between releases, from their records."""
    changes: Changes = {}
    releases = sorted(records, key=age)
    for section in sorted({section for record in records.values() for section in record}):
        held = [records[release].get(section, {}) for release in releases]
        found = changes[section] = {}
        for name in sorted({name for values in held for name in values}):
            last: str | None = None
            for release, values in zip(releases, held, strict=True):
                if values.get(name) != last:
                    last = values.get(name)
                    found.setdefault(name, {})[release] = last
    return changes


def age(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))


def settings_since(changes: Changes) -> dict[str, dict[str, list[str]]]:
    """The arguments of configs that not all releases take: what came with which, what went."""
    oldest = min((r for values in changes["settings"].values() for r in values), key=age)
    table: dict[str, dict[str, list[str]]] = {"came": {}, "went": {}}
    for name, values in changes["settings"].items():
        first, *_ = values
        *_, last = values
        if first != oldest:
            table["came"].setdefault(first, []).append(name)
        if values[last] is None:
            table["went"].setdefault(last, []).append(name)
    return {kind: dict(sorted(by.items(), key=lambda i: age(i[0]))) for kind, by in table.items()}


def write(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def main(releases: list[str]) -> None:
    records = unfold(json.loads(API.read_text(encoding="utf-8"))) if API.exists() else {}
    for release in releases or RELEASES:
        print(release, flush=True)
        records[release] = record(release)
    changes = fold(records)
    write(API, changes)
    write(SETTINGS, settings_since(changes))


if __name__ == "__main__":
    main(sys.argv[1:])
