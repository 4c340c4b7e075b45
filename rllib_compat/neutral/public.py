"""Names that stay: what pickles, converted checkpoints and printed code name of this package.

Pickle names a class by its module. Files move; so a class or function that gets into checkpoints
says that it is of a public module (`rllib_compat.adapters`, `rllib_compat.modules`), which gets it
from wherever it is now.
"""

from __future__ import annotations

import importlib
import traceback
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
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
    module: str, files: Mapping[str, Iterable[str]], *, package: str | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """The `__getattr__`, `__dir__` and `__all__` of a package that imports its files when asked.

    Args:
        module: Its name.
        files: The names in each of its files: `name`, or `name as public_name`; those of "" are
            files that are public as a whole.
        package: Where the files are; the package itself by default.
    """
    homes = {}
    for file, names in files.items():
        for name in names:
            private, _, public_name = name.partition(" as ")
            homes[public_name or private] = (file, private)

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        file, private = homes[name]
        found = importlib.import_module(f"{package or module}.{file or private}")
        return getattr(found, private) if file else found

    return get, lambda: sorted(homes), sorted(homes)


def frames_of_others(error: BaseException) -> traceback.StackSummary:
    """Where an error came from, without this package and Python's import system."""
    ours = (str(Path(__file__).parents[1]), "<frozen")
    frames = traceback.extract_tb(error.__traceback__)
    return (
        traceback.StackSummary.from_list(
            frame for frame in frames if not frame.filename.startswith(ours)
        )
        or frames
    )


def import_attribute(module: str, name: str) -> Any:
    """What a module that a user names has under a name. Text of a stranger's file never comes here.

    Raises:
        ImportError: There is no such module, or nothing of that name in it.
        ConfigError: The module fails when it is imported, also for want of another module.
    """
    if not module or module.startswith("."):
        raise ImportError(f"{module!r} is no module's name")
    try:
        found = importlib.import_module(module)
    except (Exception, SystemExit) as error:  # whatever the module does when it is imported
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if missing and f"{module}.".startswith(f"{missing}."):
            raise
        from rllib_compat.neutral.errors import ConfigError

        last = frames_of_others(error)[-1]
        raise ConfigError(
            f"The import of {module} failed: {type(error).__name__}: {error}",
            where=f"{last.filename}:{last.lineno}",
            fix="Correct the error, or name another module.",
        ) from error
    try:
        return getattr(found, name)
    except AttributeError as error:
        raise ImportError(str(error)) from error
