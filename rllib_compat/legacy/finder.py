"""Finds the faces: `rllib_compat.legacy.old.ray.rllib.agents` is what `ray.rllib.agents` was.

Faces have names of their own, so that Ray's modules and they don't get mixed up in `sys.modules`,
and so that a pickle that names one is read in any process.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from rllib_compat.legacy import faces
from rllib_compat.legacy.table import MIRROR


class FaceFinder(MetaPathFinder):
    """Finds the face of each module that any Ray or gym had."""

    def find_spec(
        self,
        name: str,
        path: Sequence[str] | None,  # noqa: ARG002
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        """The spec of a face, or None."""
        if name != MIRROR and not name.startswith(f"{MIRROR}."):
            return None
        old = name.removeprefix(MIRROR).removeprefix(".")
        if old and not faces.exists(old):
            return None
        return ModuleSpec(name, _FaceLoader(), is_package=True)


class _FaceLoader(Loader):
    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """An empty face; its names are looked up when they are asked for."""
        return faces.Face(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing: there is no code to run."""


def install() -> None:
    """Lets Python find the faces."""
    if not any(isinstance(finder, FaceFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, FaceFinder())
