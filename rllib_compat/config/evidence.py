"""Evidence of which Rays something was written for: imports, calls, keys, algorithms, files.

Requirement and lock files of a project are read as text.
"""

from __future__ import annotations

import ast
import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

from rllib_compat.neutral.frozen import frozen
from rllib_compat.ray_versions import releases
from rllib_compat.registry import keys as table
from rllib_compat.registry import old_names

#: Keys that configs of Ray 2.0 on hold under another name, and take by the old one, too.
_HELD_AS = {
    "callbacks": "callbacks_class",
    "framework": "framework_str",
    "input": "input_",
    "lambda": "lambda_",
    "multiagent": "policies",
    "num_workers": "num_rollout_workers",
}
#: Sections whose keys are evidence.
_SECTIONS = ("model", "multiagent")

#: Packages → the Rays that had them; then those that code with them was written for, since from
#: Ray 2.0 on the older two were there for what had not been changed yet.
_PACKAGES: Mapping[str, tuple[tuple[str | None, str | None], ...]] = {
    "ray.rllib.agents": ((None, "2.3.1"), (None, "1.13.0")),
    "ray.rllib.contrib": ((None, "2.2.0"), (None, "1.13.0")),
    "ray.rllib.algorithms": (("2.0.0", None),),
}
#: The modules whose names are evidence; those of gym belong to another version.
_RAY = ("ray.rllib", "ray.tune")
#: Methods of configs → the same.
_METHODS = {
    "api_stack": ("2.21.0", None),
    "env_runners": ("2.20.0", None),
    "exploration": ("2.0.0", "2.12.0"),
    "learners": ("2.23.0", None),
    "rollouts": ("2.0.0", "2.12.0"),
}


@frozen
class Evidence:
    """What shows from which Rays something can be.

    Attributes:
        what: It, in a few words.
        first: The oldest Ray that it can be from; None: any.
        last: The newest; None: today's.
        in_code: Whether the code itself shows it, and no file beside it.
    """

    what: str
    first: str | None = None
    last: str | None = None
    in_code: bool = True


def limits(evidence: Iterable[Evidence]) -> tuple[str | None, str | None]:
    """The oldest and the newest Ray that all evidence allows; None where nothing limits them."""
    found = tuple(evidence)
    first = max((e.first for e in found if e.first), key=Version, default=None)
    return first, min((e.last for e in found if e.last), key=Version, default=None)


def of_config(config: Mapping[str, Any], algorithm: str | None = None) -> Iterator[Evidence]:
    """What the keys of a config show, and its algorithm."""
    found = [(str(key), value) for key, value in config.items()]
    for section in _SECTIONS:
        inner = config.get(section)
        pairs = inner.items() if isinstance(inner, Mapping) else ()
        found += [(f"{section}.{key}", value) for key, value in pairs]
    for path, value in found:
        # In a whole config, a later Ray has a placeholder for a key that it had renamed.
        if not table.is_placeholder(path, value) and (span := _lifetime(path)) is not None:
            yield _still_there(f"the key `{path}`", *span)
    if algorithm is not None and (span := lifetime_of_algorithm(algorithm)) is not None:
        yield _still_there(f"the algorithm {algorithm}", *span)


def of_import(module: str, names: Iterable[str] = ()) -> Iterator[Evidence]:
    """What an import of old code shows; `names` are those of `from … import`."""
    for package, spans in _PACKAGES.items():
        if f"{module}.".startswith(f"{package}."):
            yield from (Evidence(f"the import of `{package}`", *span) for span in spans)
    there = old_names.names(module) if module.startswith(_RAY) else {}
    for name in names:
        # The table's newest Ray may not have been the last one with the name.
        if name in there and there[name] != _newest_with_names():
            yield Evidence(f"the import of `{module}.{name}`", None, there[name])


def of_call(method: str) -> Iterator[Evidence]:
    """What a call of a config's method shows."""
    if method in _METHODS:
        first, last = _METHODS[method]
        yield Evidence(f"the call of `.{method}()`", first, last)


def of_code(program: ast.Module) -> Iterator[Evidence]:
    """What the imports and calls of a program show."""
    for node in ast.walk(program):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from of_import(node.module, [alias.name for alias in node.names])
        elif isinstance(node, ast.Import):
            yield from (e for alias in node.names for e in of_import(alias.name))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield from of_call(node.func.attr)


def _still_there(what: str, first: str | None, last: str) -> Evidence:
    return Evidence(what, first, None if last == table.versions()[-1] else last)


@cache
def _newest_with_names() -> str:
    modules = (module for module in old_names.modules() if module.startswith(_RAY))
    return max((v for module in modules for v in old_names.names(module).values()), key=Version)


@cache
def _lifetime(path: str) -> tuple[str, str] | None:
    spans = (table.in_use(name) for name in (path, _HELD_AS.get(path)) if name)
    return table.span_of(filter(None, spans))


@cache
def lifetime_of_algorithm(algorithm: str) -> tuple[str, str] | None:
    """The first and the last Ray that had an algorithm, by its legacy name."""
    runs = (run for runs in table.section(algorithm).values() for run in runs)
    return table.span_of((run[0], run[1]) for run in runs)


#: The files, those that pin all versions first.
_FILES = (
    "poetry.lock",
    "uv.lock",
    "pdm.lock",
    "Pipfile.lock",
    "*requirements*.txt",
    "*requirements*.in",
    "requirements/*.txt",
    "Pipfile",
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "*environment*.yml",
    "*environment*.yaml",
    "conda*.yml",
    "conda*.yaml",
)
#: What a project's first folder has.
_ROOT = (".git", "pyproject.toml", "setup.py", "setup.cfg", "Pipfile")
_HIGHEST = 4  # folders that are looked at above a script
_MOST_FILES = 20
_LARGEST = 4 << 20
_LONGEST_LINE = 1000

_NAME = r"ray(?:-(?:rllib|tune|core|default|all))?(?: ?\[[\w, -]*\])?"
_VERSION = r"[\w.*+-]+"
#: `ray[rllib]==1.13.0`, `- ray-rllib=1.13`, `"ray>=1.0,<2"` in a list of setup.py or a TOML file.
_REQUIREMENT = re.compile(
    rf"(?:^|[\s\"'(\[,-]){_NAME} ?\(?"
    rf"((?:==|[~!<>]=|[<>=]) ?{_VERSION}(?: ?, ?(?:==|[~!<>]=|[<>]) ?{_VERSION})*)"
)
#: `ray = "^1.2"`, `ray = {version = "1.13.0", extras = ["rllib"]}` of Poetry and Pipenv.
_TABLE = re.compile(rf"^\"?{_NAME}\"? ?= ?(?:\{{.{{0,200}}?version ?= ?)?[\"']([^\"']+)[\"']")
_LOCKED = re.compile(r"^name = \"ray\"\n(?:.*\n)??version = \"([^\"]+)\"", re.MULTILINE)
_LOCKED_JSON = re.compile(r"\"ray\": ?\{[^{}]{0,20000}?\"version\": ?\"([^\"]+)\"")
_WHEEL = re.compile(r"ray-(\d+\.\d+\.\d+)[\w.+]*-cp")


def find_evidence(folder: Path) -> tuple[Evidence, ...]:
    """What the files of the project say in which a folder is.

    They lie in the folder itself, or above it up to where the project begins. What the Rays that
    this package runs on fit is no evidence: whoever uses it has one of them.
    """
    for place in _places(folder.expanduser().absolute()):
        with contextlib.suppress(OSError):  # who may not look there learns nothing from there
            if found := _of_folder(place, place.stat().st_mtime_ns):
                return found
    return ()


def _places(folder: Path) -> list[Path]:
    above = [folder, *folder.parents][: _HIGHEST + 1]
    for count, place in enumerate(above):
        if any((place / name).exists() for name in _ROOT):
            return above[: count + 1]
    return [folder]


@lru_cache(64)
def _of_folder(folder: Path, _changed_at: int) -> tuple[Evidence, ...]:
    found: dict[Evidence, None] = {}
    files = [path for name in _FILES for path in sorted(folder.glob(name)) if path.is_file()]
    for path in files[:_MOST_FILES]:
        if path.stat().st_size <= _LARGEST:
            text = path.read_text("utf-8", errors="replace")
            found |= dict.fromkeys(_of_text(text, path.name))
    return tuple(found)


def _of_text(text: str, name: str) -> Iterator[Evidence]:
    for specifiers in _specifiers(text, name):
        try:
            fits = SpecifierSet(specifiers)
        except InvalidSpecifier:
            continue
        if (evidence := _evidence(fits, f"{specifiers.lstrip()} for ray in {name}")) is not None:
            yield evidence


def _specifiers(text: str, name: str) -> Iterator[str]:
    if name.endswith(".lock"):
        yield from (f"=={version.lstrip('=')}" for version in _LOCKED.findall(text))
        yield from (f"=={version.lstrip('=')}" for version in _LOCKED_JSON.findall(text))
        return
    for line in text.splitlines():
        written = line.partition("#")[0].strip()
        if "ray" not in written or len(written) > _LONGEST_LINE:
            continue
        if wheel := _WHEEL.search(line):
            yield f"=={wheel[1]}"
        elif of_table := _TABLE.search(written):
            yield _of_poetry(of_table[1])
        else:
            conda = name.endswith((".yml", ".yaml"))
            yield from (_of_pip(found, conda) for found in _REQUIREMENT.findall(written))


def _of_pip(specifiers: str, conda: bool) -> str:
    if not re.match(r"=[^=]", specifiers):
        return specifiers.replace(" ", "")
    return f"=={specifiers.strip('= ')}.*" if conda else ""  # `ray=1.13` is conda's alone


def _of_poetry(specifiers: str) -> str:
    """`^1.2.3` and a bare version as pip writes them."""
    version = specifiers.strip()
    if re.match(r"\d", version):
        return f"=={version}"
    if not version.startswith("^"):
        return version if re.match(r"[~!<>=]=?", version) and version[:2] != "~ " else ""
    parts = version[1:].split(".")
    kept = next((n for n, part in enumerate(parts) if part != "0"), len(parts) - 1)
    if not all(part.isdigit() for part in parts):
        return ""
    return f">={version[1:]},<{'.'.join([*parts[:kept], str(int(parts[kept]) + 1)])}"


def _evidence(fits: SpecifierSet, what: str) -> Evidence | None:
    """The Rays that specifiers ask for, where they are none that this package runs on."""
    exact = [s.version for s in fits if s.operator == "==" and "*" not in s.version]
    known = table.versions()
    rays = exact[:1] or [ray for ray in known if fits.contains(ray, prereleases=True)]
    if not rays or not Version(known[0]) <= Version(rays[-1]) < releases.OLDEST:
        return None
    return Evidence(what, rays[0], rays[-1], in_code=False)
