"""Which Rays the requirement and lock files of a project ask for; they are read as text."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

from rllib_compat.config.evidence import Evidence
from rllib_compat.ray_versions import releases
from rllib_compat.registry import keys as table

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
