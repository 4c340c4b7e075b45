"""What a step is: a row that says which settings of the whole config conflict.

Steps are data, like rules. A rule looks at one legacy key; a step looks at settings that several
keys made. Most rows are a condition and the values to set; those that need arithmetic name a
function that returns a `Change`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from typing import Any, Literal

from rllib_compat.config.defaults import todays_default
from rllib_compat.config.rule import Context, Settings
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.report import Severity, Verdict

#: What learns from a replay buffer that a config can describe. (DreamerV3 has one of its own kind.)
REPLAYING = ("DQN", "APEX", "SAC", "CQL", "DDPG", "APEX_DDPG", "TD3")

#: Stands for a value in `Step.sets` that the step's function computes.
COMPUTED: Any = ...


class _Absent:
    def __repr__(self) -> str:
        return "ABSENT"


#: The value of a setting that a step takes out.
ABSENT = _Absent()


@frozen
class SettingsView:
    """The settings that a step reads.

    Attributes:
        settings: All settings of the config.
        reads: Those that the step may look at.
        algorithm: The target algorithm.
    """

    settings: Mapping[str, Any]
    reads: tuple[str, ...]
    algorithm: str

    def __contains__(self, name: str) -> bool:
        self._require(name)
        return name in self.settings

    def get(self, name: str) -> Any:
        """A setting, None where nothing was set."""
        self._require(name)
        return self.settings.get(name)

    def effective(self, name: str) -> Any:
        """A setting, today's default where nothing was set; None if that is not known either."""
        value = self.get(name)
        return todays_default(self.algorithm, name)[1] if value is None else value

    def below(self, prefix: str) -> Iterator[str]:
        """The names of the settings that begin with `prefix`, which the step reads as a whole."""
        self._require(prefix)
        return (name for name in self.settings if name.startswith(f"{prefix}."))

    def _require(self, name: str) -> None:
        parts = name.split(".")
        if not any(".".join(parts[: i + 1]) in self.reads for i in range(len(parts))):
            raise KeyError(f"a step that does not declare it reads {name}")


@frozen
class Change:
    """What a step does to one config.

    Attributes:
        settings: What to set; `ABSENT` takes a setting out.
        message: The sentence for the report; none where it is empty.
    """

    settings: Mapping[str, Any]
    message: str = ""


@frozen
class Step:
    """Settings that conflict, and the values that replace them.

    Attributes:
        name: Its rows in reports and its heading in the guide are called `settle.<name>`.
        why: The reason, in a sentence or two.
        sets: The settings that it may set, each with its value (or `COMPUTED`).
        reads: The settings that it looks at; with those below them.
        key: The legacy key that the report names.
        algorithms: The target algorithms that it is for; empty: all.
        legacy: The legacy algorithms that it is for; empty: all.
        stack: The API stack that it is for; empty: both.
        unless_given: Whether settings that the config gives stay as they are.
        when: Whether the settings need it.
        change: Computes what to set; None where nothing is to be done.
        message: The sentence for the report, where `change` gives none.
        severity: How much it matters.
    """

    name: str
    why: str
    sets: Mapping[str, Any]
    reads: tuple[str, ...] = ()
    key: str = ""
    algorithms: tuple[str, ...] = ()
    legacy: tuple[str, ...] = ()
    stack: Literal["", "new", "old"] = ""
    unless_given: bool = False
    when: Callable[[SettingsView], bool] = field(default=lambda _: True)
    change: Callable[[SettingsView, Context], Change | None] | None = None
    message: str = ""
    severity: Severity = Severity.INFO

    @property
    def id(self) -> str:
        """The name that report and guide share."""
        return f"settle.{self.name}"

    def applies_to(self, context: Context) -> bool:
        """Whether it is for a config's algorithm and API stack."""
        return (
            (not self.algorithms or context.algorithm in self.algorithms)
            and (not self.legacy or context.legacy_algorithm in self.legacy)
            and self.stack in ("", context.stack)
        )

    def apply(self, settings: Settings, context: Context) -> None:
        """Mends `settings` in place, and says so in the context's findings."""
        if not self.applies_to(context):
            return
        given = SettingsView(settings, self.reads, context.algorithm)
        if not self.when(given):
            return
        compute = self.change
        change = compute(given, context) if compute else Change(self.sets, self.message)
        if change is None:
            return
        new = {
            k: v for k, v in change.settings.items() if not (self.unless_given and k in settings)
        }
        for name, value in new.items():
            if value is ABSENT:
                settings.pop(name, None)
            else:
                settings[name] = value
        if new and change.message:
            at = replace(context, id=self.id)
            at.note(Verdict.CONVERTED, f".{self.key}", change.message, self.severity)


def are_counts(*values: object) -> bool:
    """Whether values can be computed with: not what a grid search varies, nor "auto"."""
    return all(type(value) is int for value in values)
