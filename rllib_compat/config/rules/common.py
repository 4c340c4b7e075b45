"""Conversions that rules of several families name."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from rllib_compat.config.deferred import ImportedName
from rllib_compat.config.rule import Context, Convert, Outcome, drop, is_off, refuse
from rllib_compat.neutral.report import Severity, Verdict


def is_set(value: object) -> bool:
    """Whether a value asks for something."""
    return not is_off(value)


def is_false(value: object) -> bool:
    """Whether a value is False, and not only empty."""
    return value is False


def is_given(value: object) -> bool:
    """Whether a value is anything but None."""
    return value is not None


def warn_if_set(value: object, _: Context) -> Outcome:
    """Drops a value: with a warning if it did something, silently if it was switched off."""
    if is_off(value):
        return Outcome(message="it was switched off, as it always is now")
    return Outcome(severity=Severity.WARNING)


def for_new_stack(convert: Convert) -> Convert:
    """A conversion for the new API stack; the old one keeps the value."""

    @wraps(convert)
    def convert_or_keep(value: object, context: Context) -> Outcome:
        if context.stack == "old":
            return Outcome({context.target: value}, Verdict.KEPT)
        return convert(value, context)

    return convert_or_keep


#: Keeps a value on the old API stack; the new one has nothing like it.
keep_on_old_stack = for_new_stack(warn_if_set)


def keep_unless_placeholder(value: object, context: Context) -> Outcome:
    """Keeps a value, unless it left the place to the key that took its own (-1)."""
    if value in (None, -1):
        return drop("it was left to the default")
    return Outcome({context.target: value})


def keep_own_class(value: object, context: Context) -> Outcome:
    """Keeps a class that somebody wrote; RLlib's own are what the algorithm takes by itself."""
    module = value if isinstance(value, str) else getattr(value, "__module__", "")
    if value is None or str(module).startswith("ray.rllib."):
        return drop("RLlib's own, as by default")
    if isinstance(value, str):
        place, name = value.rsplit(".", 1)
        value = ImportedName(place, name)
    return Outcome({context.rule.target: value})


def empty_section(value: object, _: Context) -> Outcome:
    """What an empty section becomes: nothing."""
    if is_off(value):
        return drop("empty")
    raise TypeError("it is a dict")


def drop_section(_: object, __: Context) -> Outcome:
    """Drops a section with all that is in it."""
    return Outcome()


def warn_unless(idle: Callable[[Any], bool], hint: str = "") -> Convert:
    """Drops a value: with a warning, unless it asked for nothing."""

    def convert(value: object, _: Context) -> Outcome:
        return Outcome() if idle(value) else Outcome(severity=Severity.WARNING, hint=hint)

    return convert


def refuse_unless(idle: Callable[[Any], bool], said: str, why: str, hint: str) -> Convert:
    """Refuses a value, unless it asked for nothing, which is then said."""

    def convert(value: object, _: Context) -> Outcome:
        return drop(said) if idle(value) else refuse(why, hint)

    return convert
