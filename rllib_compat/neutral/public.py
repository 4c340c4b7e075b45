"""Names that stay: what pickles, converted checkpoints and printed code name of this package.

Pickle names a class by its module. Files move; so a class or function that gets into checkpoints
says that it is of a public module (`rllib_compat.adapters`, `rllib_compat.modules`), which gets it
from wherever it is now.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

Named = TypeVar("Named", bound=Callable[..., Any])


def public(module: str) -> Callable[[Named], Named]:
    """Makes pickle name a class or function by a public module.

    Args:
        module: The public module. It is imported, since cloudpickle copies what it does not find
            in an imported module into the pickle.
    """

    def give(named: Named) -> Named:
        named.__module__ = module
        importlib.import_module(module)
        return named

    return give


def lazy_exports(
    module: str, package: str, files: Mapping[str, Iterable[str]]
) -> tuple[Callable[[str], Any], list[str]]:
    """The `__getattr__` and the `__all__` of a public module.

    Args:
        module: Its name.
        package: Where its files are now.
        files: The names in each of them.
    """
    homes = {name: f"{package}.{file}" for file, names in files.items() for name in names}

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return getattr(importlib.import_module(homes[name]), name)

    return get, sorted(homes)


def import_attribute(module: str, name: str) -> Any:
    """What a module that a user names has under a name. Text of a stranger's file never comes here.

    Raises:
        ImportError: There is no such module, or nothing of that name in it.
    """
    try:
        return getattr(importlib.import_module(module), name)
    except (AttributeError, ValueError) as error:
        raise ImportError(str(error)) from error
