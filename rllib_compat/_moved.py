"""Modules of the first version under their old names.

Checkpoints that the first version converted, and code that it generated, name them; both go on
working.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

#: What a dotted name began with in version 0.1 → where it is.
MOVED = {
    "rllib_compat.adapters.": "rllib_compat.runtime.",
    "rllib_compat.checkpoints": "rllib_compat.convert",
    "rllib_compat.checkpoints.convert": "rllib_compat.convert.pipeline",
    "rllib_compat.checkpoints.layouts": "rllib_compat.formats.layouts",
    "rllib_compat.config.later": "rllib_compat.adapters",
    "rllib_compat.modules.": "rllib_compat.networks.modules.",
    "rllib_compat.offline": "rllib_compat.runtime.offline",
    "rllib_compat.report": "rllib_compat.neutral.report",
    "rllib_compat.spaces": "rllib_compat.neutral.spaces",
}


def today(name: str) -> str | None:
    """Today's name of a module of version 0.1, or None where it has not moved."""
    found = max((old for old in MOVED if _below(name, old)), key=len, default=None)
    return MOVED[found] + name.removeprefix(found) if found else None


def _below(name: str, old: str) -> bool:
    return name.startswith(old if old.endswith(".") else f"{old}.") or name == old


# Loader and finder are not derived from those of importlib.abc: to import that costs as much as all
# the rest of `import rllib_compat`.
class _Alias:
    """Gives the module of today for an old name: one module, two names."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Imports today's module."""
        self._spec = spec
        name = today(spec.name)
        assert name is not None
        module = importlib.import_module(name)
        self._own = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Keeps today's module as it is: the import has put the alias's spec into it."""
        module.__spec__ = self._own


class _Finder:
    def find_spec(
        self,
        name: str,
        path: Sequence[str] | None,  # noqa: ARG002
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        """The alias of a module that has moved."""
        if today(name) is None:
            return None
        return ModuleSpec(name, _Alias(), is_package=True)  # type: ignore[arg-type]


def install() -> None:
    """Lets Python find moved modules.

    It comes first: below an alias of a package, Python would find the package's files once more.
    """
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
