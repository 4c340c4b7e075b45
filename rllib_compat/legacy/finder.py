"""Finds the faces: `rllib_compat.legacy.old.ray.rllib.agents` is what `ray.rllib.agents` was.

Faces have names of their own, so that Ray's modules and they don't get mixed up in `sys.modules`,
and so that a pickle that names one is read in any process.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import FrameType, ModuleType

from rllib_compat.legacy import callers, faces, old_examples
from rllib_compat.legacy.table import MIRROR


class FaceFinder(MetaPathFinder):
    """Finds the face of each module that any Ray or gym had."""

    def find_spec(
        self,
        name: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        """The spec of a face, or of a module of the old Ray that the user has named, or None."""
        if name != MIRROR and not name.startswith(f"{MIRROR}."):
            # `importlib` knows the package by its old name, and looks for more where it lies.
            there = old_examples.are_in(path)
            return ModuleSpec(name, _GoneLoader(), is_package=True) if there else None
        if (spec := old_examples.find_spec(name, path)) is not None:
            return spec
        old = name.removeprefix(MIRROR).removeprefix(".")
        if old and not faces.exists(old):
            return None
        return ModuleSpec(name, _FaceLoader(), is_package=True)


class GoneModules(MetaPathFinder):
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
        return ModuleSpec(name, _GoneLoader(), is_package=True) if faces.exists(name) else None


def _asked_by_user() -> bool:
    frame: FrameType | None = sys._getframe(2)  # noqa: SLF001 - who asks
    while frame is not None and "importlib" in frame.f_globals.get("__name__", ""):
        frame = frame.f_back
    if frame is None:
        return False
    name = frame.f_globals.get("__name__", "")
    return name.startswith("rllib_compat.runtime.") or callers.is_user_code(frame.f_globals)


class _FaceLoader(Loader):
    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """An empty face; its names are looked up when they are asked for."""
        return faces.Face(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing: there is no code to run."""


class _GoneLoader(_FaceLoader):
    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The face, under the old name too."""
        return importlib.import_module(f"{MIRROR}.{spec.name}")


def install() -> None:
    """Lets Python find the faces."""
    if not any(isinstance(finder, FaceFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, FaceFinder())
    if not any(isinstance(finder, GoneModules) for finder in sys.meta_path):
        sys.meta_path.append(GoneModules())


def uninstall() -> None:
    """Leaves old names alone; faces that are named in pickles are found all the same."""
    sys.meta_path[:] = [f for f in sys.meta_path if not isinstance(f, GoneModules)]
