"""What Python's import system asks: whose code imports, and where an old module is.

An import statement asks `builtins.__import__`, which gets the globals of the code that imports, and
other code asks `importlib.import_module`. So user code gets old modules (`replacement`), and
everybody else what they asked for. Old modules have
names of their own (`rllib_compat.legacy.old.ray…`), so that Ray's and they don't get mixed up in
`sys.modules`, and so that a pickle that names one is read in any process: `OldModuleFinder` finds
them.
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
    Below `OLD_PACKAGE`, only modules out of an old Ray that the user has named have code.
    """
    name = namespace.get("__name__") or ""
    if name.partition(".")[0] in user_packages or name.startswith(f"{OLD_PACKAGE}."):
        return True
    file = namespace.get("__file__")
    return _is_user_file(file) if isinstance(file, str) else name == "__main__"


def asks_user_code(frame: FrameType | None) -> bool:
    """Whether the user's own code asks for a module.

    Args:
        frame: Where it is asked for. Whoever called it counts in the place of what imports for
            others, and of code that `exec` runs in a namespace without a file.
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
    """What an import statement of user code gets in the place of a module.

    Args:
        name: The module.
        fromlist: The names after `import`, in `from … import`; else the first package is wanted.

    Returns:
        The old module; None where Python's own import has what is asked.
    """
    root = name.partition(".")[0]
    if root not in PACKAGES or (root == "gym" and _has_gym()):
        return None
    module = _import_old(name)
    return module if fromlist else _import_old(root)


def _has_gym() -> bool:
    spec = None if "gym" in sys.modules else importlib.util.find_spec("gym")
    # A folder called gym that is no package counts for nothing beside an installed one.
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
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        """The spec of an old module, or of one of the old Ray that the user has named, or None."""
        if name != OLD_PACKAGE and not name.startswith(f"{OLD_PACKAGE}."):
            # `importlib` knows the package by its old name, and looks for more where it lies.
            there = old_ray_examples.are_in(path)
            return ModuleSpec(name, _AliasLoader(), is_package=True) if there else None
        if (spec := old_ray_examples.find_spec(name, path)) is not None:
            return spec
        old = name.removeprefix(OLD_PACKAGE).removeprefix(".")
        if old and not modules.exists(old):
            return None
        return ModuleSpec(name, _OldModuleLoader(), is_package=True)


class RemovedModuleFinder(MetaPathFinder):
    """Finds modules that are gone under their old names, for `importlib` and names in configs.

    It comes last and asks who wants to know: only the user's code, and this package on its behalf.
    """

    def find_spec(
        self,
        name: str,
        path: Sequence[str] | None,  # noqa: ARG002
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        """The spec of a module that no installed Ray has, or None."""
        if not name.startswith(("ray.rllib.", "ray.tune.")) or not _asked_by_user():
            return None
        return ModuleSpec(name, _AliasLoader(), is_package=True) if modules.exists(name) else None


def _asked_by_user() -> bool:
    frame: FrameType | None = sys._getframe(2)  # noqa: SLF001 - who asks
    while frame is not None:
        name = frame.f_globals.get("__name__") or ""
        if "importlib" not in name and name != "rllib_compat.legacy.activation":
            break
        frame = frame.f_back
    else:
        return False
    ours = ("rllib_compat.runtime.", "rllib_compat.neutral.public")
    return name.startswith(ours) or asks_user_code(frame)


class _OldModuleLoader(Loader):
    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """An empty module; its names are looked up when they are asked for."""
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
    """Leaves old names alone; old modules that are named in pickles are found all the same."""
    sys.meta_path[:] = [f for f in sys.meta_path if not isinstance(f, RemovedModuleFinder)]
