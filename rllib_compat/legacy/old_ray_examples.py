"""Examples of an old Ray that the user names: `ray.rllib.examples.{env,models,policy}`.

They count as the user's own code: nothing else of that Ray is imported, and their imports get old
modules. Modules are read where they are, in a wheel by Python's `zipimport`, and replace the old
modules below `rllib_compat.legacy.old`.
"""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

from rllib_compat.formats.paths import local_path
from rllib_compat.neutral.errors import CompatError
from rllib_compat.registry.old_names import OLD_PACKAGE

_PACKAGE = f"{OLD_PACKAGE}.ray.rllib.examples"
_PARTS = ("env", "models", "policy")

#: What the user has named, and the folder `ray/rllib/examples` in it; None where nothing is named.
named: str | None = None
_folder: str | None = None


def use(path: str | Path | None) -> None:
    """Uses the examples of that Ray from now on.

    Args:
        path: A wheel, a `site-packages`, a folder `ray`; None for no Ray.

    Raises:
        CompatError: There are no such examples.
    """
    global named, _folder
    found = None if path is None else str(local_path(path).absolute())
    if found == named:
        return
    named, _folder = found, None if found is None else _examples_of(Path(found))
    for package in (f"{_PACKAGE}.{part}" for part in _PARTS):
        _forget(package)
        _forget(package.removeprefix(f"{OLD_PACKAGE}."))  # where `importlib` has imported it


def _forget(package: str) -> None:
    for name in list(sys.modules):
        if name == package or name.startswith(f"{package}."):
            del sys.modules[name]
    above, _, part = package.rpartition(".")
    if above in sys.modules:
        vars(sys.modules[above]).pop(part, None)


def find_spec(name: str, path: Sequence[str] | None) -> ModuleSpec | None:
    """The spec of a module of the old Ray that is named, or None.

    Args:
        name: The module, below `OLD_PACKAGE`.
        path: The path of its package, as the import system has it; old modules have none.
    """
    parent, _, last = name.rpartition(".")
    if _folder is None or not name.startswith(f"{_PACKAGE}."):
        return None
    if parent == _PACKAGE:
        path = [_folder] if last in _PARTS else None
    return PathFinder.find_spec(name, path) if path else None


def are_in(path: Sequence[str] | None) -> bool:
    """Whether a package of that path is one of the old Ray that is named."""
    return _folder is not None and any(str(part).startswith(_folder) for part in path or ())


def _examples_of(path: Path) -> str:
    try:
        found = next(_candidates(path), None)
    except (OSError, zipfile.BadZipFile) as error:
        raise _error(path, f"{path} can't be read: {error}.") from None
    if found is None:
        raise _error(path, f"{path} has no folder ray/rllib/examples/env.")
    return found


def _candidates(path: Path) -> Iterator[str]:
    """Each folder `rllib/examples` with a folder `env`; wheels have `ray` at two places."""
    if path.is_dir():
        for above in ("ray", ".", "ray-*.data/purelib/ray"):
            for folder in path.glob(f"{above}/rllib/examples/env"):
                yield str(folder.parent)
        return
    with zipfile.ZipFile(path) as archive:
        for file in archive.namelist():
            examples, env, _ = file.partition("/env/")
            if env and examples.endswith("ray/rllib/examples"):
                yield f"{path}/{examples}"


def _error(path: Path, found: str) -> CompatError:
    return CompatError(
        found,
        where=str(path),
        fix="name a wheel of Ray (`pip download --no-deps --only-binary :all: --python-version 38 "
        "ray==1.13.0`), a site-packages folder with ray in it, or a folder `ray`; Ray 0.8.6 - 2.10 "
        "have these examples",
    )
