"""How a row of the table of rules is written: `kept("gamma", v.FRACTION, "training.*")`.

A row names one key, or several that are alike. In a target, `*` stands for the key's own name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeAlias

from rllib_compat.config import values as v
from rllib_compat.config.rule import Rule
from rllib_compat.config.rules.common import warn_if_set
from rllib_compat.config.values.kinds import Kind
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.report import Verdict

#: Makes the rules of a row for a family, which has a name and algorithms of its own.
Row: TypeAlias = "Callable[[str, tuple[str, ...]], list[Rule]]"


@frozen
class Family:
    """Rules that stand on one page of the guide.

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

    Args:
        parts: Name, title and first sentence; the algorithms that all rows are for that name no
            others; the rows.
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
    """A row of the table.

    Args:
        verdict: What becomes of the keys.
        keys: One key, or several.
        value: What their values may be.
        target: The setting on the new API stack.
        why: The reason, in one sentence without a full stop at the end.
        old: The setting on the old API stack, where it is another one; empty: there is none.
        algorithms: Those that it holds for, where they are not those of the family.
        **options: Other fields of the rules.
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


#: Keys that an argument of today has by the same name.
kept = partial(row, Verdict.KEPT)
#: Keys that have another name today.
renamed = partial(row, Verdict.RENAMED)
#: Keys that belong to something else today.
moved = partial(row, Verdict.MOVED)
#: Keys whose value means the same in another form.
converted = partial(row, Verdict.CONVERTED)
#: Keys that this package does what they say for.
wrapped = partial(row, Verdict.WRAPPED)
#: Keys that no Ray of today can do anything for.
refused = partial(row, Verdict.REFUSED)


def dropped(keys: str, why: str, value: Kind = v.UNREAD, **options: Any) -> Row:
    """Keys that mean nothing any more, or nothing on the new API stack."""
    return row(Verdict.DROPPED, keys, value, "", why, **options)


def lost(keys: str, why: str, **options: Any) -> Row:
    """Keys that did something which is gone: a warning, unless they were switched off."""
    return dropped(keys, why, convert=warn_if_set, **options)
