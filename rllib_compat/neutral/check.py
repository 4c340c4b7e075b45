"""The neutral state is checked when it is made, from whatever reader it comes.

Each reader builds a `LegacyCheckpoint` of what a file says. Behind `check`, code may rely on it:
every field has the type that its record declares, weights are arrays of numbers, counters are
numbers of a sensible size, and what is free in form (configs, optimizer state, whatever else was
there) has no circles, is not nested deeply, and unfolds to a bounded number of values, so that
plain recursion through it ends.
"""

from __future__ import annotations

import re
import types
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any, TypeAlias, Union, get_args, get_origin, get_type_hints

import numpy as np

from rllib_compat.neutral.budget import Budget, budget_error
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
from rllib_compat.neutral.report import Finding, Verdict

#: How deep a config may be nested; real ones are six deep. What recurses takes two frames a level.
DEEPEST = 60

_LONGEST_TEXT = 100_000
#: The longest name of an array that any Ray wrote has some 200 characters.
_LONGEST_NAME = 1000
_LARGEST_COUNT = 1 << 63

_LONGEST_VERSION = 40
#: `0.8.5`, `2.0.0rc1`, `3.0.0.dev0`: what `packaging` takes, and Ray has.
_VERSION = re.compile(
    r"\d{1,4}(\.\d{1,4}){0,3}((a|b|rc)\d{1,4})?(\.?(dev|post)\d{1,4})?(\+[a-z0-9]{1,20})?\Z"
)


def check(checkpoint: LegacyCheckpoint, budget: Budget | None = None) -> LegacyCheckpoint:
    """The same checkpoint, if all of it is what it should be.

    Weights that are not finite are no error: they get a finding. A version of Ray that no Ray ever
    had is left out, with a finding, since rules compare versions.

    Raises:
        CorruptCheckpointError: A field is not what it should be; the error names it.
        BudgetExceededError: There is more in it than the budget allows.
    """
    _check_fields(checkpoint, LegacyCheckpoint, "checkpoint")
    _check_fields(checkpoint.source, Source, "source")
    _check_fields(checkpoint.counters, Counters, "counters")
    for finding in checkpoint.findings:
        _check_fields(finding, Finding, "findings")
    walk = _Walk(budget or Budget())
    for name in ("config", "extra", "policy_mapping_fn", "policies_to_train"):
        walk.through(getattr(checkpoint, name), name)
    walk.through(checkpoint.counters.raw, "counters.raw")
    findings: list[Finding] = []
    for policy_id, policy in checkpoint.policies.items():
        _check_policy(policy_id, policy, walk)
        findings += _not_finite(policy)
    return _with_sound_version(checkpoint).with_findings(findings)


def check_values(value: object, budget: Budget, where: str) -> None:
    """Makes sure that a value that is free in form can be walked through.

    Raises:
        CorruptCheckpointError: It leads in a circle.
        BudgetExceededError: It is nested too deeply, or is more than the budget allows.
    """
    _Walk(budget).through(value, where)


def is_version(text: object) -> bool:
    """Whether a value can be the version of a Ray."""
    sound = isinstance(text, str) and len(text) <= _LONGEST_VERSION and _VERSION.match(text)
    return bool(sound)


def _with_sound_version(checkpoint: LegacyCheckpoint) -> LegacyCheckpoint:
    version = checkpoint.source.ray_version
    if version is None or is_version(version):
        return checkpoint
    finding = Finding.warning(
        "ray-version",
        Verdict.DROPPED,
        "ray_version",
        f"{version[:_LONGEST_VERSION]!a} is not a version of Ray",
        "what depends on the version is read as if no version were given",
    )
    source = replace(checkpoint.source, ray_version=None)
    return replace(checkpoint, source=source).with_findings([finding])


def _check_policy(policy_id: object, policy: object, walk: _Walk) -> None:
    if why := why_unsafe(policy_id):
        raise _wrong("policies", f"an id of a policy is not safe: {why}")
    where = f"policies.{policy_id}"
    if not isinstance(policy, PolicyState) or policy.policy_id != policy_id:
        raise _wrong(where, "the policy under this id has another id")
    _check_fields(policy, PolicyState, where)
    if isinstance(policy.weights, np.ndarray) and policy.weights.ndim != 1:
        raise _wrong(f"{where}.weights", "an array of all weights should be one vector")
    if policy.observation_filter is not None:
        _check_fields(policy.observation_filter, ObservationFilter, f"{where}.observation_filter")
        for number, stat in enumerate(policy.observation_filter.stats):
            place = f"{where}.observation_filter.stats[{number}]"
            _check_fields(stat, RunningStat, place)
            if stat.mean.dtype.kind not in "iuf" or stat.m2.dtype.kind not in "iuf":
                raise _wrong(place, "statistics should be real numbers")
    walk.through(policy.weights, f"{where}.weights")
    walk.through(policy.learner_weights, f"{where}.learner_weights")
    for name in ("optimizer", "config", "exploration", "learner_optimizer", "extra"):
        walk.through(getattr(policy, name), f"{where}.{name}")


def _wrong(where: str, what: str) -> CorruptCheckpointError:
    return CorruptCheckpointError(
        f"The checkpoint is inconsistent: {what}.",
        where=where[:300],
        fix="Use another checkpoint: the file is damaged.",
    )


def _check_fields(record: object, kind: type, where: str) -> None:
    """Makes sure that a record's fields have the types that its class declares."""
    if not isinstance(record, kind):
        raise _wrong(where, f"it is {type(record).__name__}, not {kind.__name__}")
    for name, fits in _tests(kind).items():
        if not fits(getattr(record, name)):
            found, wanted = type(getattr(record, name)).__name__, kind.__annotations__[name]
            raise _wrong(f"{where}.{name}", f"it should be {wanted}, and is not ({found})")


_Test: TypeAlias = Callable[[Any], bool]


@cache
def _tests(kind: type) -> dict[str, _Test]:
    """A test for each field of a class of records."""
    return {name: _test(hint) for name, hint in get_type_hints(kind).items()}


def _test(hint: Any) -> _Test:
    """A test for what a field declares. Parts of records are tested as records, not here."""
    origin, args = get_origin(hint), get_args(hint)
    if hint is Any:
        return lambda _: True
    if hint in _PLAIN:
        return _PLAIN[hint]
    if origin in (Union, types.UnionType):
        tests = [_test(part) for part in args]
        return lambda value: any(fits(value) for fits in tests)
    if origin is np.ndarray:
        return lambda value: isinstance(value, np.ndarray) and value.dtype.kind in "biufc"
    if origin in (dict, Mapping):
        return _mapping_test(_test(args[1]), named_arrays=get_origin(args[1]) is np.ndarray)
    if origin in (list, tuple):
        fits = _test(args[0])
        return lambda value: isinstance(value, origin) and all(map(fits, value))
    return lambda value: isinstance(value, hint)


def _mapping_test(fits: _Test, *, named_arrays: bool) -> _Test:
    longest = _LONGEST_NAME if named_arrays else _LONGEST_TEXT

    def test(value: object) -> bool:
        if isinstance(value, Digests):  # of our own reading: sound, and some are still computed
            return True
        return (
            isinstance(value, Mapping)
            and all(isinstance(name, str) and len(name) <= longest for name in value)
            and all(map(fits, value.values()))
        )

    return test


_PLAIN: Mapping[Any, _Test] = {
    type(None): lambda value: value is None,
    str: lambda value: isinstance(value, str) and len(value) <= _LONGEST_TEXT,
    bool: lambda value: isinstance(value, bool),
    int: lambda value: type(value) is int and abs(value) < _LARGEST_COUNT,
    float: lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
}


def _list_parts(value: object) -> Iterable[tuple[Any, Any]] | None:
    """The parts of a container with their keys; None of what is no container."""
    if isinstance(value, Mapping):
        return value.items()
    if isinstance(value, (list, tuple, set, frozenset, deque)):
        return enumerate(value)
    if isinstance(value, np.ndarray) and value.dtype.hasobject:
        return enumerate(value.flat)
    return None


def _bytes_of(value: object) -> int:
    """How many bytes a leaf takes when it is written out."""
    if isinstance(value, (str, bytes, bytearray)):
        return len(value)
    return value.nbytes if isinstance(value, (np.ndarray, memoryview)) else 0


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

    def through(self, value: object, where: str) -> None:
        """Spends what a value unfolds to.

        Raises:
            CorruptCheckpointError: It leads in a circle, or is nested too deeply.
            BudgetExceededError: It is too much.
        """
        values, size, _ = self._measure(value, where, DEEPEST)
        self._budget.spend("values", values, where)
        self._budget.spend("unfolded", size, where)
        self._budget.check_time(where)

    def _measure(self, value: object, where: str, room: int) -> tuple[int, int, int]:
        parts = _list_parts(value)
        if parts is None:
            return 1, _bytes_of(value), 0
        if id(value) in self._sizes:
            known = self._sizes[id(value)]
            if known is None:
                raise _wrong(where, "a value contains itself")
            if known[2] > room:
                raise budget_error("depth", where)
            return known
        if room <= 0:
            raise budget_error("depth", where)
        self._sizes[id(value)] = None
        values, size, height = 1, 0, 0
        for key, part in parts:
            if isinstance(key, (str, bytes)):
                size += len(key)
            more, larger, higher = self._measure(part, where, room - 1)
            values, size, height = values + more, size + larger, max(height, higher)
            if values > self._budget.values:
                raise budget_error("values", where)
        measured = self._sizes[id(value)] = values, size, height + 1
        return measured


def _not_finite(policy: PolicyState) -> list[Finding]:
    """A finding for weights, and for a filter's statistics, with NaN or infinity in them."""
    parts: dict[str, Any] = {"weights": policy.weights, "learner_weights": policy.learner_weights}
    if policy.observation_filter is not None:
        stats = enumerate(policy.observation_filter.stats)
        parts["observation_filter"] = {
            f"{name} {number}": getattr(stat, name)
            for number, stat in stats
            for name in ("mean", "m2")
        }
    return [row for name, part in parts.items() for row in _not_finite_in(policy, name, part)]


#: A constant of today's modules: infinite if logarithms are not clipped.
_NO_LIMIT = "log_std_clip_param_const"


def _not_finite_in(policy: PolicyState, part: str, arrays: object) -> list[Finding]:
    listed = arrays if isinstance(arrays, (list, tuple)) else [] if arrays is None else [arrays]
    rows = arrays.items() if isinstance(arrays, Mapping) else enumerate(listed)
    names = [
        str(name)
        for name, array in rows
        if not str(name).endswith(_NO_LIMIT) and not _is_finite(array)
    ]
    if not names:
        return []
    shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    path = f"policies.{policy.policy_id}.{part}"
    message = f"NaN or infinity in {shown}"[:1000]
    hint = "the training had diverged: an earlier checkpoint may be sound"
    return [Finding.warning("not-finite", Verdict.NOTE, path, message, hint)]


_PIECE = 1 << 20


def _is_finite(array: Any) -> bool:
    if array.dtype.kind not in "fc" or not array.size:
        return True
    with np.errstate(all="ignore"):
        if np.isfinite(array.sum()):  # a single pass that takes no memory
            return True
    flat = array.reshape(-1)
    return all(np.isfinite(flat[i : i + _PIECE]).all() for i in range(0, flat.size, _PIECE))
