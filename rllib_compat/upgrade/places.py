"""Where names of old modules are today, by the table that old imports have, too.

Some of Ray's modules need what is not a part of Ray, as that of OpenSpiel, and raise when they are
imported without it. The code that is rewritten may run where it is installed, so what such a module
has is read from its source.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import ModuleType

from rllib_compat import registry
from rllib_compat.neutral.frozen import frozen
from rllib_compat.registry import old_names
from rllib_compat.upgrade.rule import Target

#: Modules that replace old ones, and are not imported by their own names.
_LEGACY = "rllib_compat.legacy."


@frozen
class Place:
    """Where a name stands.

    Attributes:
        module: The module to import it from.
        name: Its name there, "" for the module itself.
    """

    module: str
    name: str


@frozen
class ByLegacy:
    """A name that `import rllib_compat.legacy` brings back where it stood."""


@frozen
class Gone:
    """A name that stands nowhere.

    Attributes:
        why: Where it went, in a sentence.
        is_old: Whether it is known of an old Ray, so that `rllib_compat.legacy` can name it.
    """

    why: str
    is_old: bool = True


def find(module: str, name: str, target: Target) -> Place | ByLegacy | Gone | None:
    """Where a name of a module ("": the module) is today; None: nothing has to be changed."""
    if module.partition(".")[0] not in old_names.PACKAGES:
        return None
    if target is Target.COMPAT and module.startswith("ray.rllib") and name in old_names.CHANGED:
        return ByLegacy()
    _load_legacy()
    found = _module(module, target) if not name else _name(module, name, target)
    if found is None and module.startswith("ray") and not _is_there(module, name):
        place = f"{module}.{name}" if name else module
        return Gone(f"{place} is not in the Ray that is here: {old_names.advice(place)}", False)
    if isinstance(found, Gone) and target is Target.COMPAT and _brought_back(module, name):
        return ByLegacy()
    if isinstance(found, Place) and found.module.startswith(_LEGACY):
        return ByLegacy()  # by the name that the code uses anyway
    return None if found == Place(module, name) else found


def _is_there(module: str, name: str) -> bool:
    return has(module, name) if name else is_module(module)


def _brought_back(module: str, name: str) -> bool:
    """Whether `rllib_compat.legacy` has it, and not only a name that raises when it is used."""
    from rllib_compat.legacy import modules

    with _old_imports():
        try:
            if not name:
                return modules.exists(module)
            value = modules.lookup(module, name)
        except ImportError:  # by another module's text it is not there, and that can't be imported
            return False
    found = value is not modules.MISSING and not isinstance(value, ModuleType)
    return found and not modules.is_removed(value)


@cache
def _load_legacy() -> None:
    """Imports `rllib_compat.legacy` without what that does: here, code is read and not run."""
    if "rllib_compat.legacy" not in sys.modules:
        from rllib_compat import legacy

        legacy.deactivate()


@contextmanager
def _old_imports() -> Iterator[None]:
    """Old imports work in the block: some of the modules that are looked at have them."""
    from rllib_compat import legacy

    was_active = legacy.is_active()
    legacy.activate()
    try:
        yield
    finally:
        if not was_active:
            legacy.deactivate()


def _module(module: str, target: Target) -> Place | Gone | None:
    if target is Target.COMPAT and module in old_names.MODULES:
        return Place(old_names.MODULES[module], "")
    homes = [h for h in _homes(module) if target is Target.COMPAT or not _ours(h)]
    if homes:
        return Place(homes[0], "")
    if module in old_names.modules():
        return Gone(f"{module} is gone: {old_names.advice(module)}")
    return None


def _name(module: str, name: str, target: Target) -> Place | Gone | None:
    own = _own(module, name, target)
    if own is not None:
        return own
    for home in _homes(module):
        usable = not home.startswith(_LEGACY) and (target is Target.COMPAT or not _ours(home))
        if usable and has(home, name):
            return Place(home, name)
    if name in old_names.MOVED and module.startswith("ray."):
        to, _, found = old_names.MOVED[name].partition(":")
        if not to.startswith("rllib_compat"):
            return Place(to, found)
    if f"{module}.{name}" in {*old_names.modules(), *old_names.MODULES}:
        below = _module(f"{module}.{name}", target)
        if isinstance(below, Place):
            parent, _, last = below.module.rpartition(".")
            return Place(parent, last)
        if below is not None:
            return below
    if name in old_names.names(module) or name in old_names.MOVED:
        return Gone(f"{module}.{name} is gone: {old_names.advice(f'{module}.{name}')}")
    return None


def _own(module: str, name: str, target: Target) -> Place | None:
    """What this package, or today's Ray by another name, has for a name."""
    in_rllib = module.startswith("ray.rllib")
    algorithm = registry.class_names().get(name) if in_rllib else None
    part = module.removeprefix("ray.rllib.").partition(".")[0]
    if target is Target.NATIVE:
        if algorithm and part == "agents" and (today := registry.of(algorithm).becomes):
            return Place(registry.of(today).home, today)
        return _place(old_names.NATIVE[name]) if in_rllib and name in old_names.NATIVE else None
    ours = old_names.MODULES.get(module)
    if ours and name in getattr(importlib.import_module(ours), "__all__", ()):
        return Place(ours, name)
    if module == "ray" and name == "tune":
        return Place("rllib_compat", "tune")
    if ours and module == "ray.tune" and hasattr(importlib.import_module(ours), name):
        return Place(ours, name)
    if algorithm and part in ("agents", "contrib"):
        return Place("rllib_compat", name)
    if in_rllib and name in old_names.IN_RLLIB:
        where = old_names.IN_RLLIB[name]
        return _place(old_names.PUBLIC[where]) if where in old_names.PUBLIC else None
    return None


def _place(where: str) -> Place:
    module, _, name = where.partition(":")
    return Place(module, name)


def _homes(module: str) -> list[str]:
    """The modules of today in which names of an old one may stand, ours first."""
    return [name for name in old_names.candidates(module) if is_module(name)]


def _ours(module: str) -> bool:
    return module.startswith("rllib_compat")


def is_module(name: str) -> bool:
    """Whether there is a module of that name today."""
    return _load(name) is not None


def has(module: str, name: str) -> bool:
    """Whether a module of today holds something by that name."""
    found = _load(module)
    there = hasattr(found, name) if isinstance(found, ModuleType) else name in (found or ())
    return there or is_module(f"{module}.{name}")


@cache
def _load(name: str) -> ModuleType | frozenset[str] | None:
    """The module, or the names that its source binds; None where there is none."""
    try:
        return importlib.import_module(name)
    except Exception:  # whatever a module raises that lacks what it needs
        return _names_in_source(name)


def _names_in_source(module: str) -> frozenset[str] | None:
    try:
        spec = importlib.util.find_spec(module)
    except Exception:  # what it is in is not there, or can't be imported, either
        return None
    if spec is None or not spec.origin or not spec.origin.endswith(".py"):
        return None
    return frozenset(_bound(ast.parse(Path(spec.origin).read_bytes())))


def _bound(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)
        else:
            for below in ast.walk(node):
                if isinstance(below, ast.Name) and isinstance(below.ctx, ast.Store):
                    yield below.id
