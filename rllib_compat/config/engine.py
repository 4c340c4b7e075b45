"""Applies rules to a config: one pass over its keys, one finding for each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import chain, repeat
from typing import Any, TypeAlias

from rllib_compat import registry
from rllib_compat.config.defaults import same
from rllib_compat.config.rule import Context, Convert, Outcome, Rule, Settings, drop, is_off, refuse
from rllib_compat.config.rules import find
from rllib_compat.neutral.deferred import Deferred
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.report import Finding, Severity, Verdict
from rllib_compat.registry import keys as table


@frozen
class Leaf:
    """A key of the config, its path, and the rule for it."""

    key: str
    path: str
    value: Any
    rule: Rule | None

    @property
    def needs_old(self) -> bool:
        """Whether only the old API stack can run its value."""
        asks = self.rule.needs_old if self.rule is not None else None
        return asks is not None and asks(_plain(self.value))


#: For how many unknown keys of a config a similar known key is suggested.
_MOST_HINTS = 100

#: Whether somebody chose the value of a leaf, or some Ray put it there by itself.
Chosen: TypeAlias = "Callable[[Leaf], bool]"


@frozen
class Entry:
    """A leaf with what became of it."""

    leaf: Leaf
    finding: Finding
    settings: Mapping[str, Any]


def leaves(
    config: Mapping[str, Any], algorithms: tuple[str, ...], prefix: str = "", path: str = "$"
) -> Iterator[Leaf]:
    """All keys of a config, those inside sections included."""
    for key, value in config.items():
        name, where = f"{prefix}{key}", f"{path}.{key}"
        rule = find(name, algorithms)
        if rule is not None and rule.section and isinstance(value, Mapping) and value:
            yield from leaves(value, algorithms, f"{name}.", where)
        else:
            yield Leaf(name, where, value, rule)


def apply(
    config: Mapping[str, Any], context: Context, path: str = "$", chosen: Chosen | None = None
) -> list[Entry]:
    """Translates every key of `config`, which has been validated.

    A key that names the same setting as a newer one of the config gives way to it.

    Args:
        config: A dict of root keys.
        context: What the rules may ask.
        path: The path of the dict.
        chosen: Tells whether somebody chose a value; where it is not known which Ray the config is
            from, what no Ray had as a default counts as chosen.
    """
    algorithms = (context.legacy_algorithm, context.algorithm)
    chosen = chosen or (lambda leaf: not _by_itself(leaf, context))
    hints = chain(repeat(True, _MOST_HINTS), repeat(False))
    found = leaves(config, algorithms, path=path)
    entries = [_entry(leaf, context, chosen, hints) for leaf in found]
    return _without_conflicts(entries, context.legacy_algorithm, chosen)


def settings_of(entries: list[Entry]) -> Settings:
    """All settings of the entries, in one dict, in the order of their names."""
    merged = {name: value for entry in entries for name, value in entry.settings.items()}
    return dict(sorted(merged.items()))


def _entry(leaf: Leaf, context: Context, chosen: Chosen, hints: Iterator[bool]) -> Entry:
    if leaf.rule is None:
        return Entry(leaf, _without_rule(leaf, context, hints), {})
    rule = leaf.rule
    at = replace(context, path=leaf.path, id=rule.id, applied=rule)
    outcome = _outcome(rule, leaf.value, at)
    if context.stack == "new" and context.keeps and context.keeps.fullmatch(rule.id):
        finding = Finding(rule.id, Severity.INFO, Verdict.KEPT, leaf.path, _KEPT)
        return Entry(leaf, finding, outcome.settings)
    needs_old = leaf.needs_old
    if context.stack == "new" and needs_old:
        by_default = context.legacy_ray is not None and not chosen(leaf)
        if registry.of(context.algorithm).new_stack_only:
            which, hint = f"{context.algorithm} runs on the new API stack alone", _TAKE_OUT
        else:
            which, hint = "the new API stack is asked for", outcome.hint or rule.hint or _KEEP
        outcome = _gone_with_the_old_stack(rule, which, by_default=by_default, hint=hint)
    verdict, severity = outcome.verdict or rule.verdict, outcome.severity or Severity.INFO
    harmless = not needs_old and _by_itself(leaf, context)
    if severity is Severity.WARNING and verdict is Verdict.DROPPED and harmless:
        severity = Severity.INFO
    finding = Finding(
        rule.id,
        severity,
        verdict,
        leaf.path,
        outcome.message or _sentence(rule, outcome.settings),
        outcome.hint or rule.hint,
    )
    return Entry(leaf, finding, outcome.settings)


_KEPT = "the network is the old one, which has it"

_KEEP = "api_stack='old' keeps it, or take it out"
_TAKE_OUT = "take it out, or train an algorithm that the old API stack has, such as PPO"


def _gone_with_the_old_stack(rule: Rule, which: str, *, by_default: bool, hint: str) -> Outcome:
    """What the new stack makes of a value that only the old one can run.

    One that somebody chose is refused. A default decides nothing, and is a warning.
    """
    why = rule.why or "only the old API stack can run it"
    if by_default:
        return drop(why, Severity.WARNING, hint)
    return refuse(f"{why}; {which}", hint)


def _outcome(rule: Rule, value: object, at: Context) -> Outcome:
    """What one value becomes; each alternative of a grid search for itself."""
    if isinstance(value, Deferred):
        return Outcome({rule.target_on(at.stack): value})
    if isinstance(value, Mapping) and set(value) == {"grid_search"}:
        outcomes = [_outcome(rule, one, at) for one in value["grid_search"]]
        names = {frozenset(o.settings) for o in outcomes}
        if len(names) != 1:
            return Outcome(
                outcomes[0].settings if outcomes else {},
                message="its alternatives lead to different settings; the first is taken here",
                severity=Severity.WARNING,
                hint="run the legacy config itself with Tune: each trial is translated alone",
            )
        grid = {n: {"grid_search": [o.settings[n] for o in outcomes]} for n in outcomes[0].settings}
        return replace(outcomes[0], settings=grid)
    if rule.convert is not None:
        return _converted(rule.convert, value, at)
    target = rule.target_on(at.stack)
    if target:
        return Outcome({target: value})
    if rule.target:
        return drop("it has no counterpart on the old API stack")
    return Outcome()


def _converted(convert: Convert, value: object, at: Context) -> Outcome:
    try:
        return convert(value, at)
    except (TypeError, ValueError, LookupError, AttributeError) as error:
        message = f"{value!r:.60} is not a valid value of this key ({error})"
        return refuse(message, "give it a value of the right kind, or take it out")


def _plain(value: object) -> Any:
    """A value, or of a grid search the first alternative that does anything."""
    if isinstance(value, Mapping) and set(value) == {"grid_search"}:
        return next((v for v in value["grid_search"] if not is_off(v)), None)
    return value


def _sentence(rule: Rule, settings: Mapping[str, Any]) -> str:
    names = ", ".join(_call(name) for name in settings)
    if rule.verdict in (Verdict.DROPPED, Verdict.REFUSED) or not names:
        return rule.why or "nothing to set"
    said = f"`{names}`" if len(settings) == 1 else names
    return f"{said}: {rule.why}" if rule.why else said


def _call(setting: str) -> str:
    method, _, name = setting.partition(".")
    method = "EnvSettings" if method == "env" else method
    return f"{method}({name}=…)"


def _without_rule(leaf: Leaf, context: Context, hints: Iterator[bool]) -> Finding:
    """The row of a key of another algorithm, or of one that no Ray had."""
    name, lifetime = context.legacy_algorithm, table.lifetime(leaf.key)
    if lifetime is None:
        near = table.nearest(leaf.key) if next(hints) else None
        first, last = (table.lifetime(near) if near else None) or ("", "")
        hint = f"did you mean {near.rpartition('.')[2]!r} (Ray {first} – {last})?" if near else ""
        message = "no Ray from 0.5 on had this key"
        rule, error = "engine.unknown_key", Severity.ERROR
        return Finding(rule, error, Verdict.UNKNOWN, leaf.path, message, hint)
    owners = [home for home in table.homes(leaf.key) if home != "common"]
    if name in owners:
        message = f"{name} is gone, and its key with it"
        return Finding("removed.key", Severity.INFO, Verdict.DROPPED, leaf.path, message)
    idle = is_off(leaf.value) or _by_itself(leaf, context)
    idle = idle or table.is_placeholder(leaf.key, leaf.value)
    whose = f"a key of {', '.join(owners[:4])}" if owners else "a key of other algorithms"
    message = f"{whose} (Ray {' – '.join(lifetime)}); {name} never read it"
    severity = Severity.INFO if idle else Severity.WARNING
    return Finding("engine.foreign_key", severity, Verdict.DROPPED, leaf.path, message)


def _by_itself(leaf: Leaf, context: Context) -> bool:
    """Whether some Ray put the value there, as in configs that were dumped whole."""
    return table.was_default(leaf.key, leaf.value, context.legacy_algorithm)


def _without_conflicts(entries: list[Entry], algorithm: str, chosen: Chosen) -> list[Entry]:
    """Where keys give one setting different values, the one that somebody chose wins.

    Of several (or of defaults alone), one that says something wins over None, a key of the
    algorithm over a common one, and a newer key over an older one.
    """
    by_setting: dict[str, list[Entry]] = {}
    for entry in entries:
        for name in entry.settings:
            by_setting.setdefault(name, []).append(entry)
    lost: dict[int, dict[str, Entry]] = {}
    for name, rivals in by_setting.items():
        winner = max(rivals, key=lambda entry: _rank(entry, name, algorithm, chosen))
        for rival in rivals:
            if not same(rival.settings[name], winner.settings[name]):
                lost.setdefault(id(rival), {})[name] = winner
    return [_give_way(e, lost[id(e)], chosen) if id(e) in lost else e for e in entries]


def _rank(
    entry: Entry, setting: str, algorithm: str, chosen: Chosen
) -> tuple[bool, bool, bool, int, str]:
    leaf = entry.leaf
    return (
        chosen(leaf),
        entry.settings[setting] is not None,
        algorithm in table.homes(leaf.key),
        table.since(leaf.key, algorithm),
        leaf.key,
    )


def _give_way(loser: Entry, winners: Mapping[str, Entry], chosen: Chosen) -> Entry:
    name, winner = next(iter(winners.items()))
    rest = {k: v for k, v in loser.settings.items() if k not in winners}
    finding = replace(
        loser.finding,
        verdict=Verdict.DROPPED,
        severity=Severity.WARNING if chosen(loser.leaf) else Severity.INFO,
        message=f"{winner.leaf.path} decides about {_call(name)}",
    )
    return Entry(loser.leaf, finding, rest)
