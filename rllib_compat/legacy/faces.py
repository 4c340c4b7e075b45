"""A face: a module of an old Ray or gym, whose names are looked up where they stand today."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator
from functools import cache
from types import ModuleType
from typing import Any

from rllib_compat.legacy import algorithms, old_names, table
from rllib_compat.legacy.example_classes import with_old_api
from rllib_compat.legacy.gone import gone
from rllib_compat.legacy.table import MIRROR

#: What was given for a name that does not stand where it stood: (module, name) → what it is now.
redirected: dict[tuple[str, str], str] = {}
_NOTHING = object()


class Face(ModuleType):
    """What user code gets for a module of an old Ray.

    Args:
        name: Its name below `MIRROR`.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__: list[str] = []  # so that it can have submodules

    def __getattr__(self, name: str) -> Any:
        place = _place(self)
        value = find(place, name)
        if value is _NOTHING:
            raise AttributeError(f"module {place!r} has no attribute {name!r}")
        if isinstance(value, (type, ModuleType)) or callable(value):
            setattr(self, name, value)  # data may be replaced there
        return value

    def __dir__(self) -> list[str]:
        place = _place(self)
        there = {name for home in _homes(place) for name in _public(home)}
        return sorted(there | old_names.names(place).keys())

    def __reduce__(self) -> Any:
        return importlib.import_module, (self.__name__,)


def exists(place: str) -> bool:
    """Whether there was, or is, a module of that name."""
    if place in old_names.modules() or place in table.STAND_INS:
        return True
    ours = any(name.startswith(f"{place}.") for name in table.NAMES)
    return ours or any(True for _ in _homes(place))


def find(place: str, name: str) -> Any:
    """What a name in an old module is today.

    Args:
        place: The old module.
        name: The name in it.

    Returns:
        The object; a face where it is a module; `_NOTHING` where no Ray had the name.
    """
    if name.startswith("__"):
        return _special(place, name)
    if (ours := _ours(place, name)) is not _NOTHING:
        _note(place, name, ours)
        return ours
    submodule = _NOTHING
    for home in _homes(place):
        value = getattr(home, name, _NOTHING)
        if isinstance(value, ModuleType):
            submodule = value
        elif value is not _NOTHING:
            if home.__name__ != place:
                _note(place, name, value)
            return with_old_api(place, name, value) if _is_own(place, name) else value
    if exists(f"{place}.{name}") and place.partition(".")[0] in table.FACED:
        return importlib.import_module(f"{MIRROR}.{place}.{name}")
    if submodule is not _NOTHING:
        return submodule
    moved = table.MOVED.get(name)
    if moved is not None and place.startswith("ray."):
        value = _at(moved)
        _note(place, name, value)
        return value
    last = old_names.names(place).get(name)
    if last is None:
        return _NOTHING
    redirected[place, name] = f"gone after {last}: {table.sentence(f'{place}.{name}')}"
    return gone(place, name, last)


def _special(place: str, name: str) -> Any:
    # Whoever looks at all modules, as `inspect` does, asks for others, and must not import Ray.
    if name == "__all__":
        return [n for n in dir(importlib.import_module(f"{MIRROR}.{place}")) if n[0] != "_"]
    if name in ("__version__", "__commit__"):
        return getattr(next(iter(_homes(place)), None), name, _NOTHING)
    return _NOTHING


def _ours(place: str, name: str) -> Any:
    """What this package has for the name, where today's Ray has something else or nothing."""
    if (own := table.NAMES.get(f"{place}.{name}")) is not None:
        return _at(own)
    stand_in = table.STAND_INS.get(place)
    if stand_in is not None:
        module = importlib.import_module(stand_in)
        if name in module.__all__:
            return getattr(module, name)
    if place.startswith("ray.rllib"):
        if name in table.RLLIB:
            return _at(table.RLLIB[name])
        return algorithms.find(place, name, _NOTHING)
    return _NOTHING


def _is_own(place: str, name: str) -> bool:
    """Whether the old module has defined the name, and not imported it."""
    return name in old_names.names(place)


def candidates(place: str) -> list[str]:
    """The names that modules of today may have in which names of an old one stand, ours first."""
    found = [place]
    for old, new in table.PLACES:
        if place == old or place.startswith(f"{old}."):
            found.append(new + place.removeprefix(old))
    return sorted(found, key=lambda name: not name.startswith("rllib_compat"))


def _homes(place: str) -> Iterator[ModuleType]:
    """The modules of today in which names of an old one may stand, the likeliest first."""
    for candidate in candidates(place):
        if (module := _module(candidate)) is not None:
            yield module


@cache
def _module(name: str) -> ModuleType | None:
    """The module of that name, or None where there is none, or a face has the name."""
    try:
        found = importlib.import_module(name)
        return None if isinstance(found, Face) else found  # a face is looked up here itself
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if name == missing or name.startswith(f"{missing}."):
            return None
        raise


def _at(target: str) -> Any:
    module, _, name = target.partition(":")
    found = importlib.import_module(module)
    return getattr(found, name) if name else found


def _place(face: ModuleType) -> str:
    return face.__name__.removeprefix(f"{MIRROR}.")


def _public(module: ModuleType) -> Iterator[str]:
    return (name for name in getattr(module, "__all__", vars(module)) if not name.startswith("_"))


def _note(place: str, name: str, value: Any) -> None:
    home = getattr(value, "__module__", None) or getattr(value, "__name__", "")
    redirected[place, name] = f"{home}.{getattr(value, '__name__', name)}".removeprefix(".")
