"""Reads the names of all modules of old Rays out of their wheels.

The sources are parsed; nothing of a release is imported or run. What is written, `old_names.json`,
tells which names an old import may ask for, and which Ray was the last that had them;
`old_constants.json` has the values of constants that are gone::

    pip download --no-deps --only-binary :all: --python-version 37 -d wheels ray==0.8.7
    pip download --no-deps -d wheels gym==0.25.2
    python -m tests.old_names wheels/ray-*.whl wheels/gym-*.tar.gz

Names of other releases that stand in the table stay there.
"""

from __future__ import annotations

import ast
import contextlib
import json
import re
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from packaging.utils import parse_sdist_filename, parse_wheel_filename
from packaging.version import Version

from rllib_compat.legacy import modules
from rllib_compat.registry import old_names

_MODULE = re.compile(
    r"^(?:\w+-[\d.]+(?:data/purelib)?/)?((?:ray/(?:rllib|tune)|gym)(?:/\w+)*?)(/__init__)?\.py$"
)
_OTHERS = re.compile(
    r"/(tests|tuned_examples|benchmarks|asv|cloud|unittest)/|/(test_(?!utils$)\w+|conftest|setup|version)$"
)
#: Scripts, which nobody imports; what they share is in folders of its own.
_SCRIPTS = re.compile(r"ray/(rllib|tune)/examples/\w+$")


def names_of(wheel: Path) -> dict[str, set[str]]:
    """The names of each module of `ray.rllib` and `ray.tune` in a wheel."""
    return {
        module: set(_bound(tree.body, package=package)) for module, tree, package in _modules(wheel)
    }


def _modules(wheel: Path) -> Iterator[tuple[str, ast.Module, bool]]:
    """Each module, its code, and whether it is a package."""
    for file, source in _files(wheel):
        match = _MODULE.search(file)
        if match and not _OTHERS.search(match[1]) and not _SCRIPTS.match(match[1]):
            yield match[1].replace("/", "."), ast.parse(source), bool(match[2])


def _files(archive: Path) -> Iterator[tuple[str, bytes]]:
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            yield from ((file, wheel.read(file)) for file in wheel.namelist())
        return
    with tarfile.open(archive) as sources:
        for member in sources:
            if member.isfile() and (file := sources.extractfile(member)):
                yield member.name, file.read()


def _bound(body: list[ast.stmt], *, package: bool) -> Iterator[str]:
    """The names that statements bind at the top: its own, and what a package passes on."""
    for node in body:
        names: list[str] = []
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names = [node.name]
        elif (assigned := _assigned(node)) is not None:
            names = [target.id for target in assigned[0] if isinstance(target, ast.Name)]
        elif package and isinstance(node, ast.ImportFrom):
            names = [alias.asname or alias.name for alias in node.names]
        elif isinstance(node, (ast.If, ast.Try)):
            if not _is_of_scripts(node):
                yield from _bound(node.body, package=package)
            yield from _bound(node.orelse, package=package)
        yield from (name for name in names if not name.startswith("__") and name != "logger")


def _assigned(node: ast.stmt) -> tuple[list[ast.expr], ast.expr] | None:
    """What a statement assigns to, and the value; `NAME: Type = value` does so, too."""
    if isinstance(node, ast.Assign):
        return node.targets, node.value
    if isinstance(node, ast.AnnAssign) and node.value is not None:
        return [node.target], node.value
    return None


def _is_of_scripts(node: ast.stmt) -> bool:
    """Whether it binds names only in a script that is run, which no import gives."""
    return isinstance(node, ast.If) and ast.unparse(node.test) == "__name__ == '__main__'"


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


def constants(wheels: list[Path]) -> dict[str, Any]:
    """The numbers, names and lists of them that stood in modules, and that no Ray has today."""
    found: dict[str, Any] = {}
    for wheel in sorted(wheels, key=_version):
        for module, tree, _ in _modules(wheel):
            if module.startswith("gym") or ".automl" in module or ".examples" in module:
                continue
            for (target, *_), given in filter(None, map(_assigned, tree.body)):
                name = getattr(target, "id", "_")
                if name.isupper() and not name.startswith("_"):
                    with contextlib.suppress(ValueError):
                        value = ast.literal_eval(given)
                        if _is_plain(value) and _is_gone(module, name):
                            found[f"{module}.{name}"] = value
    return found


def _is_gone(module: str, name: str) -> bool:
    known = f"{module}.{name}" in old_names.constants()
    return known or modules.is_removed(modules.lookup(module, name))


def _is_plain(value: object) -> bool:
    """Whether it is a value that isn't a text for people."""
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    if isinstance(value, dict):
        return all(map(_is_plain, [*value, *value.values()]))
    return isinstance(value, (int, float)) or (
        isinstance(value, str) and not re.search(r"[ :]", value)
    )


def _version(archive: Path) -> Version:
    parse = parse_wheel_filename if archive.suffix == ".whl" else parse_sdist_filename
    return parse(archive.name)[1]


def main() -> None:
    """Writes the tables of the wheels that are named on the command line."""
    wheels = [Path(name) for name in sys.argv[1:]]
    target = Path(old_names.__file__).with_suffix(".json")
    _write(target, table(wheels, json.loads(target.read_text("utf-8"))))
    known = json.loads(target.with_name("old_constants.json").read_text("utf-8"))
    _write(target.with_name("old_constants.json"), known | constants(wheels))


def _write(file: Path, rows: object) -> None:
    file.write_text(json.dumps(rows, indent=0, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
