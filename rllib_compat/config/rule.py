"""What a rule is: one legacy key, and what becomes of it.

Rules are data. Where the new value has to be computed, a rule names a function that turns the old
value into an `Outcome`; everything else is said by the fields. A *setting* is a dotted path that
starts with the `AlgorithmConfig` method and goes on with its argument: `training.lr`,
`rl_module.model_config.fcnet_hiddens`. The method `env` is ours: its settings describe how the
environment is wrapped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, TypeAlias

from rllib_compat.config.deferred import Imported
from rllib_compat.config.values.kinds import Kind, Unread
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.report import Severity, Verdict

if TYPE_CHECKING:
    from rllib_compat.config.context import Context

Settings: TypeAlias = dict[str, Any]

#: Nothing is set by the key, and nothing reads its value.
UNREAD = Unread()


@frozen
class Outcome:
    """What became of one value, where that depends on the value.

    Attributes:
        settings: What to set on the target; empty where there is nothing to set.
        verdict: The verdict, where it is not the rule's own.
        message: The sentence for the report, where it is not the rule's own.
        severity: How much it matters, where it is not the rule's own.
        hint: What to do about it, where it is not the rule's own.
    """

    settings: Mapping[str, Any] = field(default_factory=dict)
    verdict: Verdict | None = None
    message: str = ""
    severity: Severity | None = None
    hint: str = ""


Convert: TypeAlias = "Callable[[Any, Context], Outcome]"


def needless(value: Any) -> bool:
    """Whether a value switches its key off, so that no API stack has to know the key."""
    return value is None or (
        isinstance(value, (bool, int, float, str, dict, list, tuple)) and not value
    )


@frozen
class Rule:
    """One legacy key of one or of all algorithms, and what becomes of it.

    Attributes:
        family: The page of the guide that the rule stands on.
        key: The key with its section: `num_workers`, `model.fcnet_hiddens`.
        verdict: What becomes of it.
        why: The reason, in one sentence without a full stop at the end.
        target: The setting on the new API stack; empty if it has none there.
        old_target: The setting on the old API stack, where it is another one.
        convert: Makes the settings of the old value, where they are not just the value.
        algorithms: The legacy algorithms that it holds for; empty: all.
        hint: What the reader can do.
        severity: How much it matters.
        needs_old: Says for a value whether only the old API stack can run it.
        section: Whether the value is a dict whose keys have rules of their own.
        value: What the value may be.
    """

    family: str
    key: str
    verdict: Verdict
    why: str = ""
    target: str = ""
    old_target: str | None = None
    convert: Convert | None = None
    algorithms: tuple[str, ...] = ()
    hint: str = ""
    severity: Severity = Severity.INFO
    needs_old: Callable[[Any], bool] | None = None
    section: bool = False
    value: Kind = field(kw_only=True)

    @property
    def id(self) -> str:
        """The name that report, guide and `--only`/`--skip` share."""
        if self.key.startswith(f"{self.family}."):
            return self.key
        return f"{self.family}.{self.key}"

    def target_on(self, stack: str) -> str:
        """The setting on `stack` ("new" or "old"); empty if it has none there."""
        if stack == "old" and self.old_target is not None:
            return self.old_target
        return self.target


def nested(settings: Settings, method: str) -> dict[str, Any]:
    """The settings of one method as nested arguments."""
    arguments: dict[str, Any] = {}
    for name, value in settings.items():
        head, *path, last = name.split(".")
        if head != method:
            continue
        place = arguments
        for key in path:
            inside = place.get(key)
            place[key] = dict(inside) if isinstance(inside, Mapping) else {}
            place = place[key]
        place[last] = value
    return arguments


def words(text: str) -> list[str]:
    """The names in a text."""
    return text.split()


def kept(family: str, method: str, keys: Mapping[Kind, str], **options: Any) -> tuple[Rule, ...]:
    """Rules for keys that today's `AlgorithmConfig.<method>()` takes by the same name.

    Args:
        family: The page of the guide.
        method: The method.
        keys: What the values may be → the keys.
        **options: Other fields of the rules.
    """
    return tuple(
        Rule(family, key, Verdict.KEPT, target=f"{method}.{key}", value=value, **options)
        for value, names in keys.items()
        for key in names.split()
    )


def renamed(
    family: str, method: str, names: Mapping[Kind, Mapping[str, str]], **options: Any
) -> tuple[Rule, ...]:
    """Rules for keys that today's `AlgorithmConfig.<method>()` takes by another name.

    Args:
        family: The page of the guide.
        method: The method.
        names: What the values may be → the keys → their names today.
        **options: Other fields of the rules.
    """
    return tuple(
        Rule(family, old, Verdict.RENAMED, target=f"{method}.{new}", value=value, **options)
        for value, pairs in names.items()
        for old, new in pairs.items()
    )


def dropped(family: str, keys: str | Iterable[str], why: str, **options: Any) -> tuple[Rule, ...]:
    """Rules for keys that mean nothing any more."""
    names = keys.split() if isinstance(keys, str) else keys
    options = {"value": UNREAD, **options}
    return tuple(Rule(family, key, Verdict.DROPPED, why, **options) for key in names)


def rllib_class(setting: str) -> Convert:
    """Keeps a class that somebody wrote; RLlib's own are what the algorithm takes by itself."""

    def convert(value: Any, _: Context) -> Outcome:
        module = value if isinstance(value, str) else getattr(value, "__module__", "")
        if value is None or str(module).startswith("ray.rllib."):
            return Outcome(verdict=Verdict.DROPPED, message="RLlib's own, as by default")
        if isinstance(value, str):
            place, name = value.rsplit(".", 1)
            return Outcome({setting: Imported(place, name)})
        return Outcome({setting: value})

    return convert


def lost(family: str, keys: str | Iterable[str], why: str, **options: Any) -> tuple[Rule, ...]:
    """Rules for keys that did something which is gone: a warning, unless they were switched off."""
    return dropped(family, keys, why, convert=drop_aloud, **options)


def empty_section(value: Any, _: Context) -> Outcome:
    """What an empty section becomes: nothing."""
    if needless(value):
        return Outcome(verdict=Verdict.DROPPED, message="empty")
    raise TypeError("it is a dict")


def drop_aloud(value: Any, _: Context) -> Outcome:
    """Drops a value: with a warning if it did something, silently if it was switched off."""
    if needless(value):
        return Outcome(message="it was switched off, as it always is now")
    return Outcome(severity=Severity.WARNING)
