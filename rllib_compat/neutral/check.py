"""The neutral state is checked when it is made, from whatever reader it comes.

Each reader builds a `LegacyCheckpoint` of what a file says. Behind `check`, code may rely on it:
every field has its type, weights are arrays of numbers, counters are numbers of a sensible size,
and what is free in form (configs, optimizer state, whatever else was there) has no circles, is not
nested deeply, and unfolds to a bounded number of values, so that plain recursion through it ends.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from rllib_compat.neutral.budget import Budget, exceeded
from rllib_compat.neutral.checkpoint import (
    Counters,
    LegacyCheckpoint,
    ObservationFilter,
    PolicyState,
    RunningStat,
    Source,
)
from rllib_compat.neutral.digests import Digests
from rllib_compat.neutral.errors import CorruptCheckpointError
from rllib_compat.neutral.policy_id import why_unsafe
from rllib_compat.neutral.ray_version import with_sound_version
from rllib_compat.neutral.report import Finding, Severity, Verdict
from rllib_compat.neutral.spaces import Space

#: How deep a config may be nested; real ones are six deep. What recurses takes two frames a level.
DEEPEST = 60

_LONGEST_TEXT = 100_000
#: The longest name of an array that any Ray wrote has some 200 characters.
_LONGEST_NAME = 1000
_LARGEST_COUNT = 1 << 63


def check(checkpoint: LegacyCheckpoint, budget: Budget | None = None) -> LegacyCheckpoint:
    """The same checkpoint, if all of it is what it should be.

    Weights that are not finite are no error: they get a finding.

    Args:
        checkpoint: What a reader has made.
        budget: What the job may cost.

    Raises:
        CorruptCheckpointError: A field is not what it should be; the error names it.
        BudgetExceededError: There is more in it than the budget allows.
    """
    budget = budget or Budget()
    _check_fields(checkpoint, _CHECKPOINT, "checkpoint")
    _check_fields(checkpoint.source, _SOURCE, "source")
    _check_fields(checkpoint.counters, _COUNTERS, "counters")
    walk = _Walk(budget)
    for name in ("config", "extra", "policy_mapping_fn", "policies_to_train"):
        walk.through(getattr(checkpoint, name), name)
    walk.through(checkpoint.counters.raw, "counters.raw")
    findings: list[Finding] = []
    for policy_id, policy in checkpoint.policies.items():
        _check_policy(policy_id, policy, walk)
        findings += _not_finite(policy)
    return with_sound_version(checkpoint).with_findings(findings)


def check_values(value: Any, budget: Budget, where: str) -> None:
    """Makes sure that a value that is free in form can be walked through.

    Raises:
        CorruptCheckpointError: It leads in a circle.
        BudgetExceededError: It is nested too deeply, or is more than the budget allows.
    """
    _Walk(budget).through(value, where)


def _check_policy(policy_id: Any, policy: Any, walk: _Walk) -> None:
    if why := why_unsafe(policy_id):
        raise _wrong("policies", f"an id of a policy is not safe: {why}")
    where = f"policies.{policy_id}"
    if not isinstance(policy, PolicyState) or policy.policy_id != policy_id:
        raise _wrong(where, "what stands under this id is not the policy of this id")
    _check_fields(policy, _POLICY, where)
    if policy.observation_filter is not None:
        _check_fields(policy.observation_filter, _FILTER, f"{where}.observation_filter")
        for number, stat in enumerate(policy.observation_filter.stats):
            _check_fields(stat, _STAT, f"{where}.observation_filter.stats[{number}]")
    walk.through(policy.weights, f"{where}.weights")
    walk.through(policy.learner_weights, f"{where}.learner_weights")
    for name in ("optimizer", "config", "exploration", "learner_optimizer", "extra"):
        walk.through(getattr(policy, name), f"{where}.{name}")


def _wrong(where: str, what: str) -> CorruptCheckpointError:
    return CorruptCheckpointError(
        f"The checkpoint contradicts itself: {what}.",
        where=where[:300],
        fix="The file is damaged, or not what it seems; use another checkpoint.",
    )


_Test: TypeAlias = Callable[[Any], bool]


def _check_fields(record: Any, tests: tuple[type, Mapping[str, tuple[_Test, str]]], where: str):  # type: ignore[no-untyped-def]
    kind, rows = tests
    if not isinstance(record, kind):
        raise _wrong(where, f"it is {type(record).__name__}, not {kind.__name__}")
    for name, (test, wanted) in rows.items():
        if not test(getattr(record, name)):
            found = type(getattr(record, name)).__name__
            raise _wrong(f"{where}.{name}", f"it should be {wanted}, and is not ({found})")


def _either(*tests: _Test) -> _Test:
    return lambda value: any(test(value) for test in tests)


def _nothing(value: Any) -> bool:
    return value is None


def _text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= _LONGEST_TEXT


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _count(value: Any) -> bool:
    return type(value) is int and abs(value) < _LARGEST_COUNT


def _array(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in "biufc"


def _real_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in "iuf"


def _named(test: _Test) -> _Test:
    return lambda value: (
        isinstance(value, Mapping) and all(map(_text, value)) and all(map(test, value.values()))
    )


def _named_arrays(value: Any) -> bool:
    return _named(_array)(value) and all(len(name) <= _LONGEST_NAME for name in value)


def _listed(test: _Test) -> _Test:
    return lambda value: isinstance(value, (list, tuple)) and all(map(test, value))


def _anything(_: Any) -> bool:
    return True


def _finding(value: Any) -> bool:
    texts = ("rule", "path", "message", "hint")
    if not isinstance(value, Finding):
        return False
    return (
        all(_text(getattr(value, name)) for name in texts)
        and type(value.severity) is Severity
        and type(value.verdict) is Verdict
    )


_TEXT_OR_NONE = (_either(_nothing, _text), "text or nothing")
_COUNT_OR_NONE = (_either(_nothing, _count), "a count or nothing")
_NUMBER_OR_NONE = (_either(_nothing, _number), "a number or nothing")
_FLAG = (_flag, "true or false")
_DICT = (_named(_anything), "a dict with names as keys")
_SPACE_OR_NONE = (lambda value: value is None or isinstance(value, Space), "a space or nothing")
_WEIGHTS = (
    lambda v: _named_arrays(v) or _listed(_array)(v) or (_array(v) and v.ndim == 1),
    "named arrays of numbers, a list of such, or one vector",
)

_CHECKPOINT = (
    LegacyCheckpoint,
    {
        "source": (lambda value: isinstance(value, Source), "a source"),
        "algorithm": _TEXT_OR_NONE,
        "config": _DICT,
        "config_is_complete": _FLAG,
        "modules_alone": _FLAG,
        "policies": (lambda value: isinstance(value, Mapping), "a dict of policies"),
        "counters": (lambda value: isinstance(value, Counters), "counters"),
        "findings": (_listed(_finding), "a list of findings"),
        "stand_ins": (_named(_count), "names and how often they were met"),
        "extra": _DICT,
    },
)
_SOURCE = (
    Source,
    {
        "path": (lambda value: isinstance(value, Path), "a path"),
        "layout": (_text, "text"),
        "ray_version": _TEXT_OR_NONE,
        # Of one's own reading they are sound, and would have to be waited for.
        "digests": (
            _either(lambda value: isinstance(value, Digests), _named(_text)),
            "names and digests",
        ),
    },
)
_COUNTERS = (
    Counters,
    {
        **{f.name: _COUNT_OR_NONE for f in fields(Counters) if f.name not in ("seconds", "raw")},
        "seconds": _NUMBER_OR_NONE,
        "raw": _DICT,
    },
)
_POLICY = (
    PolicyState,
    {
        "weights": _WEIGHTS,
        "observation_space": _SPACE_OR_NONE,
        "action_space": _SPACE_OR_NONE,
        "observation_filter": (
            lambda value: value is None or isinstance(value, ObservationFilter),
            "a filter or nothing",
        ),
        "config": _DICT,
        "policy_class": _TEXT_OR_NONE,
        "kl_coeff": _NUMBER_OR_NONE,
        "log_alpha": _NUMBER_OR_NONE,
        "target_entropy": _NUMBER_OR_NONE,
        "global_timestep": _COUNT_OR_NONE,
        "learner_weights": (_either(_nothing, _named_arrays), "named arrays, or nothing"),
        "extra": _DICT,
        "is_module": _FLAG,
        "found_as": _TEXT_OR_NONE,
    },
)
_FILTER = (
    ObservationFilter,
    {
        "kind": (_text, "text"),
        "demean": _FLAG,
        "destd": _FLAG,
        "clip": _NUMBER_OR_NONE,
        "epsilon": (_number, "a number"),
        "stats": (
            _listed(lambda value: isinstance(value, RunningStat)),
            "a list of running statistics",
        ),
    },
)
_STAT = (
    RunningStat,
    {
        "count": (_count, "a count"),
        "mean": (_real_array, "an array of numbers"),
        "m2": (_real_array, "an array of numbers"),
    },
)


def _parts(value: Any) -> Iterable[tuple[Any, Any]] | None:
    """The parts of a container with their keys; None of what is no container."""
    if isinstance(value, Mapping):
        return value.items()
    if isinstance(value, (list, tuple, set, frozenset, deque)):
        return enumerate(value)
    if isinstance(value, np.ndarray) and value.dtype.hasobject:
        return enumerate(value.flat)
    return None


def _bytes_of(value: Any) -> int:
    """How many bytes a leaf takes when it is written out."""
    if isinstance(value, (str, bytes, bytearray)):
        return len(value)
    if isinstance(value, (np.ndarray, memoryview)):
        return value.nbytes
    return 0


class _Walk:
    """A walk through values that are free in form.

    Each shared part is visited once, and counted as often as it is met: what is harmless in memory
    is not when it is copied, translated or written.
    """

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        # By id: values, bytes, height; None while the walk is inside of it. What is not kept alive
        # by the checkpoint (views made here) is not noted.
        self._sizes: dict[int, tuple[int, int, int] | None] = {}

    def through(self, value: Any, where: str) -> None:
        """Spends what a value unfolds to.

        Raises:
            CorruptCheckpointError: It leads in a circle, or is nested too deeply.
            BudgetExceededError: It is too much.
        """
        values, size, _ = self._measure(value, where, DEEPEST)
        self._budget.spend("values", values, where)
        self._budget.spend("unfolded", size, where)
        self._budget.check_time(where)

    def _measure(self, value: Any, where: str, room: int) -> tuple[int, int, int]:
        parts = _parts(value)
        if parts is None:
            return 1, _bytes_of(value), 0
        if id(value) in self._sizes:
            known = self._sizes[id(value)]
            if known is None:
                raise _wrong(where, "a value contains itself")
            if known[2] > room:
                raise exceeded("depth", where)
            return known
        if room <= 0:
            raise exceeded("depth", where)
        self._sizes[id(value)] = None
        values, size, height = 1, 0, 0
        for key, part in parts:
            if isinstance(key, (str, bytes)):
                size += len(key)
            more, larger, higher = self._measure(part, where, room - 1)
            values, size, height = values + more, size + larger, max(height, higher)
            if values > self._budget.values:
                raise exceeded("values", where)
        measured = self._sizes[id(value)] = values, size, height + 1
        return measured


def _not_finite(policy: PolicyState) -> list[Finding]:
    """A finding for weights, and for a filter's statistics, with NaN or infinity in them."""
    parts = {"weights": policy.weights, "learner_weights": policy.learner_weights}
    if policy.observation_filter is not None:
        stats = enumerate(policy.observation_filter.stats)
        parts["observation_filter"] = {
            f"{name} {number}": getattr(stat, name)
            for number, stat in stats
            for name in ("mean", "m2")
        }
    return [row for name, part in parts.items() for row in _not_finite_in(policy, name, part)]


#: A constant of today's modules: infinite where nothing clips a logarithm, as in the old Rays.
_NO_LIMIT = "log_std_clip_param_const"


def _not_finite_in(policy: PolicyState, part: str, arrays: Any) -> list[Finding]:
    listed = arrays if isinstance(arrays, (list, tuple)) else [] if arrays is None else [arrays]
    rows = arrays.items() if isinstance(arrays, Mapping) else enumerate(listed)
    names = [
        name
        for name, array in ((str(name), array) for name, array in rows)
        if not name.endswith(_NO_LIMIT) and not _is_finite(array)
    ]
    if not names:
        return []
    shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    return [
        Finding(
            "not-finite",
            Severity.WARNING,
            Verdict.NOTE,
            f"policies.{policy.policy_id}.{part}",
            f"NaN or infinity in {shown}"[:1000],
            "the training had diverged: an earlier checkpoint may be sound",
        )
    ]


_PIECE = 1 << 20


def _is_finite(array: Any) -> bool:
    if array.dtype.kind not in "fc" or not array.size:
        return True
    with np.errstate(all="ignore"):
        if np.isfinite(array.sum()):  # a single pass that takes no memory
            return True
    flat = array.reshape(-1)
    return all(np.isfinite(flat[i : i + _PIECE]).all() for i in range(0, flat.size, _PIECE))
