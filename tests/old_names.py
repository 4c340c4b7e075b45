"""Reads the names of all modules of old Rays out of their wheels.

The sources are parsed; nothing of a release is imported or run. What is written, `old_names.json`,
tells which names an old import may ask for, and which Ray was the last that had them::

    pip download --no-deps --only-binary :all: --python-version 37 -d wheels ray==0.8.7
    python -m tests.old_names wheels/ray-*.whl

Names of other releases that stand in the table stay there.
"""

from __future__ import annotations

import ast
import json
import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

from packaging.utils import parse_wheel_filename
from packaging.version import Version

from rllib_compat.registry import old_names

_MODULE = re.compile(r"(?:^|/)(ray/(?:rllib|tune)(?:/\w+)*?)(/__init__)?\.py$")
_OTHERS = re.compile(r"/(tests|tuned_examples|benchmarks|asv|cloud)/|/(test_\w+|conftest|setup)$")
#: Scripts, which nobody imports; what they share is in folders of its own.
_SCRIPTS = re.compile(r"ray/(rllib|tune)/examples/\w+$")


def names_of(wheel: Path) -> dict[str, set[str]]:
    """The names of each module of `ray.rllib` and `ray.tune` in a wheel."""
    found = {}
    with zipfile.ZipFile(wheel) as archive:
        for file in archive.namelist():
            match = _MODULE.search(file)
            if match and not _OTHERS.search(match[1]) and not _SCRIPTS.match(match[1]):
                tree = ast.parse(archive.read(file))
                found[match[1].replace("/", ".")] = set(_bound(tree.body, package=bool(match[2])))
    return found


def _bound(body: list[ast.stmt], *, package: bool) -> Iterator[str]:
    """The names that statements bind at the top: its own, and what a package passes on."""
    for node in body:
        names: list[str] = []
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names = [node.name]
        elif isinstance(node, ast.Assign):
            names = [t.id for t in node.targets if isinstance(t, ast.Name)]
        elif package and isinstance(node, ast.ImportFrom):
            names = [alias.asname or alias.name for alias in node.names]
        elif isinstance(node, (ast.If, ast.Try)):
            yield from _bound(node.body, package=package)
            yield from _bound(node.orelse, package=package)
        yield from (name for name in names if not name.startswith("__") and name != "logger")


Table = dict[str, dict[str, str]]


def table(wheels: list[Path], known: Table) -> Table:
    """Each module → the last Ray that had names in it → the names, separated by spaces.

    Args:
        wheels: What is read.
        known: A table of other wheels.
    """
    last: dict[tuple[str, str], str] = {}
    for module, rows in known.items():
        for release, found in rows.items():
            last |= {(module, name): release for name in ["", *found.split()]}
    for wheel in sorted(wheels, key=_version):
        release = str(_version(wheel))
        for module, names in names_of(wheel).items():
            for name in {"", *names}:  # "" stands for the module itself
                last[module, name] = max(last.get((module, name), release), release, key=Version)
    found: dict[str, dict[str, list[str]]] = {}
    for (module, name), release in sorted(last.items()):
        found.setdefault(module, {}).setdefault(release, []).append(name)
    return {m: {r: " ".join(n).strip() for r, n in rows.items()} for m, rows in found.items()}


def _version(wheel: Path) -> Version:
    return parse_wheel_filename(wheel.name)[1]


def main() -> None:
    """Writes the table of the wheels that are named on the command line."""
    target = Path(old_names.__file__).with_suffix(".json")
    rows = table([Path(name) for name in sys.argv[1:]], json.loads(target.read_text("utf-8")))
    target.write_text(json.dumps(rows, indent=0, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
