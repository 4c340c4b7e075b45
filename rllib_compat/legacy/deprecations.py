"""`ray.rllib.utils.deprecation`, which old code marks its own functions with."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

__all__ = ["DEPRECATED_VALUE", "Deprecated", "deprecation_warning"]

DEPRECATED_VALUE = -1
logger = logging.getLogger(__name__)


def deprecation_warning(
    old: str,
    new: str | None = None,
    *,
    help: str | None = None,  # noqa: A002
    error: Any = None,
) -> None:
    """Warns that something is old, or raises.

    Args:
        old: What is old.
        new: What to use in its place.
        help: A text for the reader.
        error: True for a `ValueError`, or the error to raise.
    """
    text = f"`{old}` is deprecated. {help or (f'Use `{new}` instead.' if new else '')}"
    if isinstance(error, type):
        raise error(text)
    if error:
        raise ValueError(text)
    logger.warning("DeprecationWarning: %s", text)


def Deprecated(*given: Any, **_: Any) -> Any:  # noqa: N802
    """Marks a function or class as old; whoever calls it wants it all the same."""

    def mark(function: Callable[..., Any]) -> Callable[..., Any]:
        return function

    return given[0] if given and callable(given[0]) else mark
