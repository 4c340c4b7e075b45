"""A slice of the fuzzer, and proof that it would notice; the long run is a command (`fuzz.py`)."""

from __future__ import annotations

import random

from rllib_compat.formats import layouts
from tests.security import fuzz
from tests.security.mutate import mutate


def test_damaged_and_hostile_checkpoints_are_refused_or_read():
    figures = fuzz.run(mutants=150, seed=7)
    assert figures.uncaught == {}
    assert figures.large == []
    assert figures.mutants == 150
    # Most mutants are still near enough to a checkpoint to get beyond the first byte.
    assert figures.read > 30
    assert figures.refused["CorruptCheckpointError"] > 10


def test_an_error_that_is_not_ours_is_counted(monkeypatch):
    def fail(*_):
        raise ZeroDivisionError("x")

    monkeypatch.setattr(fuzz, "_warm_up", lambda _: None)
    monkeypatch.setattr(layouts, "read", fail)
    figures = fuzz.run(mutants=3, seed=7)
    assert not figures.is_clean
    assert sum(row[0] for row in figures.uncaught.values()) == 3


def test_every_mutation_is_made_again_from_its_number():
    assert fuzz.mutant(1, 5) == fuzz.mutant(1, 5)
    files = fuzz.seeds()[0]
    assert sum(mutate(files, random.Random(n), files) != files for n in range(50)) > 40
