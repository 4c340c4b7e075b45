"""All rules (`table.py`), the functions that some of them name, and the index that finds a rule."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from rllib_compat.config.rule import Rule
from rllib_compat.config.rules.models import SAC_NETWORKS, rule_in_network
from rllib_compat.config.rules.table import FAMILIES as FAMILIES


def every_rule() -> Iterator[Rule]:
    """All rules, family by family."""
    for family in FAMILIES.values():
        yield from family.rules


@cache
def _index() -> dict[str, list[Rule]]:
    index: dict[str, list[Rule]] = {}
    for rule in every_rule():
        index.setdefault(rule.key, []).append(rule)
    return index


def find(key: str, algorithms: tuple[str, ...]) -> Rule | None:
    """The rule of a key: the one for the first of `algorithms` that has one, else the common one.

    A rule for `section.*` holds for the keys of a section that took any. The sections of SAC's
    networks take all keys of the model config.
    """
    rules = _index().get(key, ())
    for algorithm in algorithms:
        for rule in rules:
            if algorithm in rule.algorithms:
                return rule
    common = next((rule for rule in rules if not rule.algorithms), None)
    head, dot, _ = key.partition(".")
    if common or not dot:
        return common
    return next(iter(_index().get(f"{head}.*", ())), None) or _in_network(key)


@cache
def _in_network(key: str) -> Rule | None:
    section, _, name = key.partition(".")
    rules = _index().get(f"model.{name}", ())
    known = next((rule for rule in rules if rule.family == "model"), None)
    if section not in SAC_NETWORKS or known is None:
        return None
    return rule_in_network(known, section)
