"""Values of kinds that nobody expects, under every key and in every field that is looked at."""

from __future__ import annotations

import contextlib
import random
import re
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import ClassVar

import numpy as np
import pytest

from rllib_compat import Given, verify
from rllib_compat.conversion.complete import complete
from rllib_compat.conversion.identify import add_spaces_of_network, identify_networks
from rllib_compat.errors import (
    CheckpointError,
    CompatError,
    CorruptCheckpointError,
    MissingInformationError,
    NotYetError,
)
from rllib_compat.formats import read_checkpoint, write_msgpack
from rllib_compat.networks import settings
from rllib_compat.neutral import (
    Counters,
    Finding,
    LegacyCheckpoint,
    ObservationFilter,
    PolicyState,
    RunningStat,
    Severity,
    Source,
    Verdict,
)
from rllib_compat.neutral import check as checks
from tests.legacy.cases import find
from tests.security.payloads import v0_1

#: One of each kind that code which expects numbers, texts or dicts can stumble over.
ODD = {
    "an array": np.array([1, 2]),
    "a table": np.zeros((2, 2)),
    "texts in an array": np.array(["a", "b"]),
    "objects in an array": np.array([None, {}], object),
    "an array of none": np.zeros(0),
    "a number's array": np.array(5),
    "a large array": np.zeros(5000),
    "a date": np.datetime64("2020"),
    "a dict with numbers as keys": {1: 2},
    "a list of arrays": [np.array([1, 2])],
    "a type that is an array": {"type": np.array([1, 2])},
    "a long number": 10**400,
    "no number": float("nan"),
    "infinity": float("inf"),
    "bytes": b"x",
    "text": "relu",
    "a set": {"a", "b"},
    "a complex number": 1j,
}


class Asked(dict):
    """A dict that notes which keys it was asked for."""

    keys_asked: ClassVar[set[str]] = set()

    def get(self, key, default=None):
        self.keys_asked.add(key)
        return super().get(key, default)

    def __getitem__(self, key):
        self.keys_asked.add(key)
        return super().__getitem__(key)

    def __contains__(self, key):
        self.keys_asked.add(key)
        return super().__contains__(key)

    def __or__(self, other):
        return Asked(super().__or__(other))


def some(algorithm):
    """Small checkpoints of an algorithm: the smallest, and one whose arrays have no names."""
    named = [c for c in find() if c.path.name.startswith(f"{algorithm}-")]
    files = {c.path: sum(p.stat().st_size for p in c.path.rglob("*") if p.is_file()) for c in named}
    by_size = sorted(named, key=lambda c: files[c.path])
    return [by_size[0], *[c for c in by_size[1:] if c.ray < "0.8"][:1]]


@pytest.mark.parametrize("algorithm", ["ddpg", "dqn", "es", "marwil", "ppo", "sac"])
def test_no_value_of_a_config_surprises_a_reader_of_networks(algorithm, monkeypatch):
    given = settings._given
    monkeypatch.setattr(Asked, "keys_asked", set())
    monkeypatch.setattr(settings, "_given", lambda value: Asked(given(value)))
    for case in some(algorithm):
        try:
            checkpoint = complete(read_checkpoint(case.checkpoint), Given())
        except CompatError:
            continue
        with contextlib.suppress(CompatError):
            identify_networks(checkpoint, Given())
        for key in sorted(Asked.keys_asked):
            for value in ODD.values():
                model = checkpoint.config.get("model")
                model = model if isinstance(model, Mapping) else {}
                for config in (
                    {**checkpoint.config, key: value},
                    {**checkpoint.config, "model": {**model, key: value}},
                ):
                    with contextlib.suppress(CompatError):
                        identify_networks(replace(checkpoint, config=config), Given())
    assert Asked.keys_asked


def renamed(name, rng):
    """A name that is nearly one of a network's."""
    at = rng.randrange(len(name) + 1)
    return rng.choice(
        (
            name[:at],
            name[:at] + rng.choice("07/._-x é\n²") + name[at:],
            name[:at] + name[at + 1 :],
            re.sub(r"\d+", rng.choice(("", "00", "99", "9" * 900)), name, count=1),
            name.partition("/")[2],
            f"{name}_{rng.randrange(3)}",
            "",
        )
    )


def reshaped(array, rng):
    """An array of another shape or kind."""
    whole = np.atleast_1d(array)
    return rng.choice(
        (whole.reshape(-1), whole.T, whole[:1], whole[:0], whole[None], np.zeros(()), whole > 0)
    )


@pytest.mark.parametrize("algorithm", ["appo", "ddpg", "dqn", "es", "ppo", "r2d2", "sac"])
def test_arrays_that_contradict_each_other_are_no_surprise(algorithm):
    """Which arrays there are, their names and shapes: all of it is as a file says."""
    rng, cases = random.Random(algorithm), [
        c for c in find() if c.path.name.startswith(f"{algorithm}-") and c.ray > "0.8"
    ]  # fmt: skip
    for case in rng.sample(cases, min(6, len(cases))):
        try:
            checkpoint = complete(read_checkpoint(case.checkpoint), Given())
        except CompatError:
            continue
        policy = next(iter(checkpoint.policies.values()))
        for _ in range(12 if isinstance(policy.weights, Mapping) else 0):
            arrays = list(policy.weights.items())
            for at in rng.choices(range(len(arrays)), k=rng.choice((1, 1, 3))):
                name, array = arrays[at]
                how = rng.randrange(4)
                arrays[at] = (renamed(name, rng) if how else name, array)
                if how in (0, 3):
                    arrays[at] = (arrays[at][0], reshaped(array, rng))
            kept = dict(arrays[rng.randrange(2) :])
            with contextlib.suppress(CompatError):
                identify_networks(
                    checkpoint.with_policies([replace(policy, weights=kept)]), Given()
                )


#: What of a record is free in form (the walk through a checkpoint bounds it), and the id.
FREE = {"policy_mapping_fn", "policies_to_train", "optimizer", "exploration", "learner_optimizer"}
FREE |= {"policy_id"}


def _with(checkpoint, part, name):
    """The checkpoint with something of no known kind in a field of a record."""
    policy = PolicyState("p", {"w": np.zeros(1)})
    stat = RunningStat(1, np.zeros(1), np.zeros(1))
    kept = ObservationFilter("MeanStdFilter", stats=(stat,))
    wrong = {name: object()}
    if part is LegacyCheckpoint:
        return replace(checkpoint, **wrong)
    if part is Source:
        return replace(checkpoint, source=replace(checkpoint.source, **wrong))
    if part is Counters:
        return replace(checkpoint, counters=replace(checkpoint.counters, **wrong))
    if part is Finding:
        finding = Finding("rule", Severity.INFO, Verdict.NOTE, "path", "message")
        return replace(checkpoint, findings=(replace(finding, **wrong),))
    if part is RunningStat:
        kept = replace(kept, stats=(replace(stat, **wrong),))
    if part is ObservationFilter:
        kept = replace(kept, **wrong)
    policy = replace(policy, observation_filter=kept)
    return checkpoint.with_policies([replace(policy, **wrong) if part is PolicyState else policy])


@pytest.mark.parametrize(
    ("part", "name"),
    [
        pytest.param(part, f.name, id=f"{part.__name__}.{f.name}")
        for part in (
            LegacyCheckpoint, Source, Counters, PolicyState, ObservationFilter, RunningStat, Finding
        )
        for f in fields(part)
        if f.name not in FREE
    ],
)  # fmt: skip
def test_every_field_of_a_record_is_checked(part, name, tmp_path):
    """`epsilon` was not: our own msgpack could make text of it, and reports format numbers."""
    sound = LegacyCheckpoint(Source(tmp_path, "0.1"))
    with pytest.raises(CorruptCheckpointError, match=name):
        checks.check(_with(sound, part, name))


@pytest.mark.parametrize("epsilon", ["1e-8", [1e-8], b"", None, True])
def test_a_filters_epsilon_is_a_number(epsilon, tmp_path):
    sound = read_checkpoint(v0_1(tmp_path / "old"))
    (policy,) = sound.policies.values()
    stat = RunningStat(1, np.zeros(4), np.zeros(4))
    with pytest.raises(CheckpointError, match="is inconsistent"):
        checks.check(
            sound.with_policies(
                [
                    replace(
                        policy,
                        observation_filter=ObservationFilter(
                            "MeanStdFilter", stats=(stat,), epsilon=epsilon
                        ),
                    )
                ]
            )
        )


def test_policies_without_weights_are_nothing_to_compare(tmp_path):
    sound = read_checkpoint(v0_1(tmp_path / "old"))
    (policy,) = sound.policies.values()
    (tmp_path / "new").mkdir()
    write_msgpack(sound.with_policies([replace(policy, weights={})]), tmp_path / "new")
    with pytest.raises(NotYetError, match="no policy has weights"):
        verify(tmp_path / "new", tmp_path / "new", given=Given("PPO"), inputs=2)


@pytest.mark.parametrize("env", ODD.values(), ids=ODD)
def test_an_environment_of_any_kind_leaves_the_action_space_to_be_asked_for(env):
    policy = PolicyState("default_policy", {})
    with pytest.raises(MissingInformationError, match="action space"):
        add_spaces_of_network(policy, (4,), {"env": env})
