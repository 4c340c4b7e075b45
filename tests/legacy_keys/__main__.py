"""Writes the table of legacy keys from the wheels of Ray releases.

It compares a release with the table, section by section ("common", "model", each algorithm), and
with `--write` puts what it read in place of what the table says of that release, or adds it::

    pip download --no-deps --only-binary :all: --python-version 37 -d wheels ray==0.8.5
    python -m tests.legacy_keys --write wheels/ray-0.8.5-*.whl

The table was written from all releases (Ray 0.5.0 – 2.60.0). Three things no default
tells, so they were read by hand and stay as they are: the bandits and AlphaZero before Ray 2.0, BC
between 0.6 and 0.8, and the sections that list what RLlib's code looked up in a dict (`multiagent`,
`callbacks`, `exploration_config`, `replay_buffer_config`, `optimizer`, …).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click
from packaging.version import Version

from rllib_compat.registry import keys
from tests.legacy_keys.sources import Release

TABLE = Path(keys.__file__).with_name("legacy_keys.json")


def in_table(section: str, release: str) -> dict[str, Any]:
    """The keys of a section at a release, as the table has them."""
    if release not in keys.versions():
        return {}
    order = keys.versions().index
    return {
        key: run[2]
        for key, runs in keys.section(section).items()
        for run in runs
        if len(run) == 3 and order(run[0]) <= order(release) <= order(run[1])
    }


def differences(release: Release) -> tuple[int, list[str]]:
    """How many keys were compared, and where the table and the sources say different things."""
    compared, found = 0, []
    for name, section in release.sections().items():
        table = in_table(name, release.version)
        for key in sorted({*table, *section}, key=str):
            compared += 1
            ours, theirs = table.get(key, "absent"), section.get(key, "absent")
            if json.dumps(ours, default=str) != json.dumps(theirs, default=str):
                found.append(f"{name}.{key}: {ours!r} in the table, {theirs!r} in the sources")
    return compared, found


def write(releases: Iterable[Release], path: Path = TABLE) -> None:
    """Puts what was read of releases in place of what the table says of them.

    A section that was not found in a release stays as it is. In a release that is new to the table
    it is what it was in the one before, if there is one after with the same.
    """
    table = json.loads(path.read_text("utf-8"))
    read = {release.version: release.sections() for release in releases}
    versions = sorted({*table["versions"], *read}, key=Version)
    sections = dict.fromkeys([*table["keys"], *(name for found in read.values() for name in found)])
    for name in sections:
        if name in keys.PARTS and name != "model":
            continue
        values = _by_key(table["keys"].get(name, {}), table["versions"])
        for version in (version for version, found in read.items() if name in found):
            for at in values.values():
                at.pop(version, None)
            for key, value in read[version][name].items():
                values.setdefault(key, {})[version] = value
        for version in (v for v in versions if v not in table["versions"] and name not in read[v]):
            for at in values.values():
                _fill(at, version, table["versions"])
        table["keys"][name] = {k: _runs(at, versions) for k, at in values.items() if at}
    lines = [f'{{"versions": {json.dumps(versions)},', '"keys": {']
    for name, found in table["keys"].items():
        rows = (
            f" {json.dumps(k)}: {json.dumps(v, separators=(',', ':'))}" for k, v in found.items()
        )
        lines += [f"{json.dumps(name)}: {{", ",\n".join(rows), "},"]
    path.write_text("\n".join(lines).removesuffix(",") + "\n}}\n", "utf-8")


def _fill(at: dict[str, Any], version: str, known: list[str]) -> None:
    """Gives a key, in place, the default that the known releases before and after one both have."""
    around = (
        [v for v in known if Version(v) < Version(version)][-1:],
        [v for v in known if Version(v) > Version(version)][:1],
    )
    before, after = (at.get(v[0], at) if v else at for v in around)
    if before is not at and before == after:
        at[version] = before


def _by_key(section: Mapping[str, keys.Runs], versions: list[str]) -> dict[str, dict[str, Any]]:
    """Runs as key → release → default."""
    return {
        key: {
            version: run[2]
            for run in runs
            for version in versions[versions.index(run[0]) : versions.index(run[1]) + 1]
        }
        for key, runs in section.items()
    }


def _runs(at: Mapping[str, Any], versions: list[str]) -> keys.Runs:
    """Release → default as runs, which end where another default comes or the key is not there."""
    runs: keys.Runs = []
    last = None
    for version in versions:
        value = json.dumps(at[version], sort_keys=True) if version in at else None
        if value is not None and value == last:
            runs[-1][1] = version
        elif value is not None:
            runs.append([version, version, at[version]])
        last = value
    return runs


@click.command()
@click.argument("wheels", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--write", "writes", is_flag=True, help="Put what was read into the table.")
def main(wheels: tuple[Path, ...], writes: bool) -> None:
    """Compares wheels of Ray with the table of legacy keys."""
    releases = [Release(wheel) for wheel in wheels]
    for release in releases:
        compared, found = differences(release)
        click.echo(f"Ray {release.version}: {compared} keys, {len(found)} differences")
        for line in found:
            click.echo(f"  {line}")
    if writes:
        write(releases)


if __name__ == "__main__":
    main()
