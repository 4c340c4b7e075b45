"""Which code imports a module, and where Python's import system finds the old modules.

An import statement calls `builtins.__import__` with the globals of its code; other code calls
`importlib.import_module`. User code gets old modules (`replacement`), all other code the
installed ones. Old modules have their own names (`rllib_compat.legacy.old.ray…`), so that they do
not replace Ray's in `sys.modules`, and a pickle that names one is read in any process:
`OldModuleFinder` finds them.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

from rllib_compat.legacy import modules, old_ray_examples
from rllib_compat.registry.old_names import OLD_PACKAGE, PACKAGES

_THIS_PACKAGE = str(Path(__file__).parents[1])
_LIBRARIES = ("site-packages", "dist-packages")

#: Packages that import modules for whoever calls them.
_LOADERS = ("gin", "hydra", "importlib", "pkgutil", "pydoc", "runpy", "stevedore")

#: Installed packages that are treated as the user's own: `activate(packages=["flow"])`.
user_packages: set[str] = set()


def is_user_code(namespace: Mapping[str, Any]) -> bool:
    """Whether the globals of a module are those of the user's own code.

    Code without a file is the user's where it is `__main__`: a notebook, or the interactive Python.
    Below `OLD_PACKAGE`, only modules of an old Ray that the user has named have code.
    """
    name = namespace.get("__name__") or ""
    if name.partition(".")[0] in user_packages or name.startswith(f"{OLD_PACKAGE}."):
        return True
    file = namespace.get("__file__")
    return _is_user_file(file) if isinstance(file, str) else name == "__main__"


def is_called_by_user_code(frame: FrameType | None) -> bool:
    """Whether the user's own code imports a module.

    Args:
        frame: The frame that imports. If its code imports for its callers, or `exec` runs it in a
            namespace without a file, the frame that called it counts.
    """
    while frame is not None:
        name, file = (frame.f_globals.get(key) or "" for key in ("__name__", "__file__"))
        if name == "__main__" or (file and name.partition(".")[0] not in _LOADERS):
            return is_user_code(frame.f_globals)
        frame = frame.f_back
    return False


@cache
def _is_user_file(file: str) -> bool:
    path = Path(file).absolute()
    if any(part in _LIBRARIES for part in path.parts):
        return False
    library = {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}
    above = {*path.parents, *path.resolve().parents}
    return not any(Path(folder) in above for folder in (_THIS_PACKAGE, *library))


def replacement(name: str, fromlist: Sequence[str]) -> ModuleType | None:
    """The module that an import statement of user code gets.

    Args:
        name: The module.
        fromlist: The names after `import`, in `from … import`; without, it gets the first package.

    Returns:
        The old module; None if Python's own import is to find it.
    """
    root = name.partition(".")[0]
    if root not in PACKAGES or (root == "gym" and _has_gym()):
        return None
    module = _import_old(name)
    return module if fromlist else _import_old(root)


def _has_gym() -> bool:
    spec = None if "gym" in sys.modules else importlib.util.find_spec("gym")
    # A folder called gym without an __init__.py is not the package.
    return "gym" in sys.modules or (spec is not None and spec.origin is not None)


def _import_old(name: str) -> ModuleType:
    try:
        return importlib.import_module(f"{OLD_PACKAGE}.{name}")
    except ModuleNotFoundError as error:
        if (error.name or "").startswith(f"{OLD_PACKAGE}."):
            missing = (error.name or "").removeprefix(f"{OLD_PACKAGE}.")
            raise ModuleNotFoundError(f"No module named {missing!r}", name=missing) from None
        raise


class OldModuleFinder(MetaPathFinder):
    """Finds the modules below `OLD_PACKAGE`."""

    def find_spec(
        self,
        name: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """The spec of an old module, or of one of the old Ray that the user has named, or None."""
        if name != OLD_PACKAGE and not name.startswith(f"{OLD_PACKAGE}."):
            # `importlib` has imported the package by its old name, and looks in its folder.
            is_example = old_ray_examples.are_in(path)
            return ModuleSpec(name, _AliasLoader(), is_package=True) if is_example else None
        if (spec := old_ray_examples.find_spec(name, path)) is not None:
            return spec
        old = name.removeprefix(OLD_PACKAGE).removeprefix(".")
        if old and not modules.exists(old):
            return None
        return ModuleSpec(name, _OldModuleLoader(), is_package=True)


class RemovedModuleFinder(MetaPathFinder):
    """Finds removed modules by their old names, for `importlib` and names in configs.

    It is the last finder, and finds them for the user's code and for this package only.
    """

    def find_spec(
        self,
        name: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """The spec of a module that no installed Ray has, or None."""
        if not name.startswith(("ray.rllib.", "ray.tune.")) or not _is_asked_by_user_code():
            return None
        return ModuleSpec(name, _AliasLoader(), is_package=True) if modules.exists(name) else None


def _is_asked_by_user_code() -> bool:
    frame: FrameType | None = sys._getframe(2)  # noqa: SLF001 - the code that imports
    while frame is not None:
        name = frame.f_globals.get("__name__") or ""
        if "importlib" not in name and name != "rllib_compat.legacy.activation":
            break
        frame = frame.f_back
    else:
        return False
    ours = ("rllib_compat.runtime.", "rllib_compat.neutral.public")
    return name.startswith(ours) or is_called_by_user_code(frame)


class _OldModuleLoader(Loader):
    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """An empty module; its names are looked up at their first use."""
        return modules.OldModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing: there is no code to run."""


class _AliasLoader(_OldModuleLoader):
    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The old module, under its old name, too."""
        return importlib.import_module(f"{OLD_PACKAGE}.{spec.name}")


def install_finders() -> None:
    """Lets Python find old modules."""
    if not any(isinstance(finder, OldModuleFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, OldModuleFinder())
    if not any(isinstance(finder, RemovedModuleFinder) for finder in sys.meta_path):
        sys.meta_path.append(RemovedModuleFinder())


def uninstall_finders() -> None:
    """Removes the finder of old names; old modules that pickles name are still found."""
    sys.meta_path[:] = [f for f in sys.meta_path if not isinstance(f, RemovedModuleFinder)]
