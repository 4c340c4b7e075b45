"""`rllib-compat doctor`: what is installed, what works with it, and what else to install."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from importlib import metadata

import click
from packaging.requirements import Requirement
from packaging.version import Version

from rllib_compat.cli import options, output
from rllib_compat.neutral.errors import CompatError
from rllib_compat.neutral.extras import PACKAGE, install_command
from rllib_compat.neutral.frozen import frozen
from rllib_compat.ray_versions import releases

#: Uses, and the extra that each needs (None: the light install has it).
_USES = (
    ("inspect, config, convert --to msgpack, load_policy", None),
    ("convert, verify, Trainer, load, train, evaluate, demo, run", "ray"),
    ("convert --to onnx", "onnx"),
    ("convert --to safetensors, policy or hub", "safetensors"),
    ("custom models of TensorFlow", "tensorflow"),
    ("evaluate --render, --video-dir", "video"),
    ("upgrade", "upgrade"),
    ("plot", "plot"),
)
#: What only a Trainer's export through torch needs.
_FOR_MORE = ("onnxscript",)


@frozen
class Package:
    """A package that this one needs.

    Attributes:
        name: Its name.
        extra: The extra that brings it; None: the light install does.
        wanted: The versions that are asked for; empty: any.
        version: The version that is installed; None: it is not.
        fits: Whether that is one of those.
    """

    name: str
    extra: str | None
    wanted: str
    version: str | None
    fits: bool


@click.command("doctor")
@options.json_option
def command(as_json: bool) -> int:
    """Prints versions, what works here, and what to install for the rest.

    The exit code is 1 if an extra is installed in part, or a package in a version that was not
    tested; an extra of which nothing is installed is no fault.

    \b
    Examples:
      rllib-compat doctor
      rllib-compat doctor --json
    """
    if _installed(PACKAGE) is None:
        raise CompatError(
            "The package runs from its folder without being installed, so its requirements are "
            "not known.",
            fix="run `pip install .` in its folder",
        )
    packages = list(_packages())
    works = {use: _missing(packages, extra) for use, extra in _USES if _known(packages, extra)}
    faults = [*_faults(packages)]
    if as_json:
        output.emit_json(
            {
                "rllib_compat": metadata.version(PACKAGE),
                "python": platform.python_version(),
                "platform": platform.platform(),
                "packages": [asdict(package) for package in packages],
                "works": {use: not missing for use, missing in works.items()},
                "faults": faults,
            }
        )
        return 1 if faults else 0
    output.table(
        f"{PACKAGE} {metadata.version(PACKAGE)}, Python {platform.python_version()}, "
        f"{platform.system()} {platform.machine()}",
        ("package", "installed", "wanted", "extra"),
        [(p.name, p.version or "no", p.wanted or "any", p.extra or "") for p in packages],
    )
    extras = dict(_USES)
    output.table(
        "what works here",
        ("what", "works", "to do"),
        [
            (
                use,
                "no" if missing else "yes",
                install_command(extras[use]) if missing else "",
            )
            for use, missing in works.items()
        ],
    )
    for fault in faults:
        output.say(fault)
    return 1 if faults else 0


def _packages() -> Iterator[Package]:
    """Every package that the light install or an extra asks for, as its metadata says."""
    for text in metadata.requires(PACKAGE) or []:
        requirement = Requirement(text)
        if requirement.name == PACKAGE:
            continue
        extra = None
        if requirement.marker is not None:
            if requirement.marker.evaluate({"extra": ""}):
                pass
            elif (extra := _extra_of(requirement)) is None:
                continue  # for another Python or system
            elif extra == "all":
                continue  # the others name it, too
        version = _installed(requirement.name)
        fits = version is not None and requirement.specifier.contains(version, prereleases=True)
        yield Package(requirement.name, extra, str(requirement.specifier), version, fits)


def _extra_of(requirement: Requirement) -> str | None:
    assert requirement.marker is not None
    known = metadata.metadata(PACKAGE).get_all("Provides-Extra") or []
    return next((e for e in known if requirement.marker.evaluate({"extra": e})), None)


def _installed(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _known(packages: list[Package], extra: str | None) -> bool:
    return extra is None or any(package.extra == extra for package in packages)


def _missing(packages: list[Package], extra: str | None) -> list[str]:
    """The packages that are not installed, or in a version that does not fit."""
    return [
        p.name
        for p in packages
        if p.extra in (None, extra) and not p.fits and p.name not in _FOR_MORE
    ]


def _faults(packages: list[Package]) -> Iterator[str]:
    """Extras that are installed in part, and versions that were not tested."""
    extras = Counter(package.name for package in packages)  # of how many each is a part
    for package in packages:
        own = [p for p in packages if p.extra == package.extra and extras[p.name] == 1]
        partly = any(p.version for p in own)
        if package.fits or package.name in _FOR_MORE or not (partly or package.extra is None):
            continue
        found = f"{package.version} is installed" if package.version else "is not installed"
        needed = f", and {package.wanted} is needed" if package.wanted else ""
        yield f"{package.name} {found}{needed}: {install_command(package.extra)}"
    ray = next((p.version for p in packages if p.name == "ray" and p.version), None)
    if ray is not None and Version(ray).release[:2] > releases.NEWEST.release[:2]:
        tested = f"{releases.OLDEST} to {releases.NEWEST}"
        yield f"Ray {ray} is newer than those that were tested ({tested})"
