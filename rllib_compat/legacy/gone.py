"""Names that old code imports and that can't exist any more: they raise when they are used."""

from __future__ import annotations

from functools import cache
from typing import Any, NoReturn

from rllib_compat.legacy import table
from rllib_compat.neutral.errors import GoneError


class _UsedWhenGone(type):
    """The type of what is gone: may be named, derived from and annotated with, and nothing else."""

    def __call__(cls, *_: Any, **__: Any) -> NoReturn:
        cls.raise_gone()

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        cls.raise_gone()

    def raise_gone(cls) -> NoReturn:
        """Says where it went, to whoever can't use such a class.

        Raises:
            GoneError: Always.
        """
        place = next(c.__dict__["_place"] for c in cls.__mro__ if "_place" in c.__dict__)
        last = next(c.__dict__["_last"] for c in cls.__mro__ if "_last" in c.__dict__)
        raise GoneError(
            f"`{place}` is not in today's Ray; the last that had it was about {last}.",
            where=place,
            fix=table.sentence(place),
        )


@cache
def gone(module: str, name: str, last: str) -> Any:
    """What stands for a name that is gone.

    Deriving from it works, because modules do that for frameworks and cases that they never use; to
    call the class, or to ask for an attribute of it, does not.

    Args:
        module: The module that had it.
        name: The name in it.
        last: The last Ray that had it, of those whose names are known.
    """
    members = {
        "__module__": f"{table.MIRROR}.{module}",
        "__qualname__": name,
        "__doc__": f"`{module}.{name}` of Ray {last} and before; it can be named and not used.",
        "_place": f"{module}.{name}",
        "_last": last,
    }
    return _UsedWhenGone(name, (), members)
