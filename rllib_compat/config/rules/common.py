"""How a row of the table of rules is written, and conversions that rows of several families name.

A row, `kept("gamma", v.FRACTION, "training.*")`, names one key, or several that are alike. In a
target, `*` is the key's own name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial, wraps
from typing import Any, TypeAlias

from rllib_compat.config import values as v
from rllib_compat.config.deferred import ImportedName
from rllib_compat.config.rule import Context, Convert, Outcome, Rule, drop, is_off, refuse
from rllib_compat.config.values.kinds import Kind
from rllib_compat.neutral.frozen import frozen
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


def mapped(change: Callable[[Any], Any]) -> Convert:
    """Sets the target to what a function returns for the value."""

    def convert(value: object, context: Context) -> Outcome:
        return Outcome({context.target: change(value)})

    return convert


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


#: Makes the rules of a row for a family, which has a name and algorithms of its own.
Row: TypeAlias = "Callable[[str, tuple[str, ...]], list[Rule]]"


@frozen
class Family:
    """Rules on one page of the guide.

    Attributes:
        title: The title of the page.
        about: Its first sentence.
        rules: The rules.
    """

    title: str
    about: str
    rules: tuple[Rule, ...]


def families(*parts: tuple[str, str, str, tuple[str, ...], Iterable[Row]]) -> dict[str, Family]:
    """Families by their names.

    A part is a name, a title and a first sentence; the algorithms that all rows are for that name
    no others; and the rows.
    """
    return {
        name: Family(title, about, tuple(rule for row in rows for rule in row(name, algorithms)))
        for name, title, about, algorithms, rows in parts
    }


def row(
    verdict: Verdict,
    keys: str,
    value: Kind,
    target: str = "",
    why: str = "",
    *,
    old: str | None = None,
    algorithms: tuple[str, ...] | None = None,
    **options: Any,
) -> Row:
    """A row of the table, for one key or several.

    The targets are settings on the new API stack and, where it is another one, on the `old`; empty:
    there is none. Options are other fields of the rules.
    """

    def make(family: str, of_family: tuple[str, ...]) -> list[Rule]:
        whose = of_family if algorithms is None else algorithms
        return [
            Rule(
                family,
                key,
                verdict,
                value,
                target.replace("*", key.rpartition(".")[2]),
                why,
                None if old is None else old.replace("*", key.rpartition(".")[2]),
                algorithms=whose,
                **options,
            )
            for key in keys.split()
        ]

    return make


#: Keys that have the same name today.
kept = partial(row, Verdict.KEPT)
#: Keys that have another name today.
renamed = partial(row, Verdict.RENAMED)
#: Keys that belong to something else today.
moved = partial(row, Verdict.MOVED)
#: Keys whose value means the same in another form.
converted = partial(row, Verdict.CONVERTED)
#: Keys that this package does what they say for.
wrapped = partial(row, Verdict.WRAPPED)
#: Keys that no supported Ray has a substitute for.
refused = partial(row, Verdict.REFUSED)


def dropped(keys: str, why: str, value: Kind = v.UNREAD, **options: Any) -> Row:
    """Keys that mean nothing any more, or nothing on the new API stack."""
    return row(Verdict.DROPPED, keys, value, "", why, **options)


def lost(keys: str, why: str, **options: Any) -> Row:
    """Keys that did something which is gone: a warning, unless they were switched off."""
    return dropped(keys, why, convert=warn_if_set, **options)
