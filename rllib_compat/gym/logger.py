"""`gym.logger`: levels of what gym said; gymnasium says it by `warnings` alone."""

from __future__ import annotations

from typing import Any

import gymnasium.logger

__all__ = ["DEBUG", "DISABLED", "ERROR", "INFO", "MIN_LEVEL", "WARN"]  # noqa: F822 - asked for
__all__ += ["debug", "info", "setLevel", "set_level"]

DEBUG, INFO, WARN, ERROR, DISABLED = 10, 20, 30, 40, 50


def set_level(level: int) -> None:
    """Says what has this level, and what has a higher one."""
    gymnasium.logger.min_level = level


setLevel = set_level  # noqa: N816 - so gym called it


def debug(text: str, *args: object) -> None:
    """Says something of level DEBUG."""
    _say(DEBUG, "DEBUG: " + text, args)


def info(text: str, *args: object) -> None:
    """Says something of level INFO."""
    _say(INFO, "INFO: " + text, args)


def _say(level: int, text: str, args: tuple[object, ...]) -> None:
    if gymnasium.logger.min_level <= level:
        print(text % args)


def __getattr__(name: str) -> Any:
    return getattr(gymnasium.logger, "min_level" if name == "MIN_LEVEL" else name)
