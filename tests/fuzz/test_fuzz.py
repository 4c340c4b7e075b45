"""A slice of the fuzzer, and proof that it would notice; the long run is a command."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from rllib_compat.formats import layouts
from tests.fuzz import run, seeds
from tests.fuzz.doors import DOORS, Door
from tests.fuzz.mutate import mutate

#: What imports Ray or rewrites programs takes longer; `python -m tests.fuzz` runs them.
SLOW = {"evaluate", "evaluate_config", "flags", "load", "recordings", "restore", "run", "train"}
SLOW |= {"optimizers", "upgrade"}


@pytest.mark.parametrize("door", sorted(DOORS.keys() - SLOW))
def test_damaged_and_hostile_files_are_refused_or_read(door):
    figures = run.run(mutants=25, seed=7, door=door)
    assert figures.is_clean, figures
    assert figures.mutants == 25
    assert figures.read
    assert figures.read + sum(figures.refused.values()) == 25


def act_badly(root: Path, out: Path, rng: random.Random) -> None:
    """Does all that a door must not do."""
    (root.parent / "elsewhere").touch()
    Path("../../canary/kept").write_text("mine")
    import stranger_code

    stranger_code.touch()
    raise ZeroDivisionError("x")


def test_what_a_door_must_not_do_is_counted(monkeypatch):
    monkeypatch.setitem(DOORS, "bad", Door(act_badly, seeds.checkpoints, 0))
    monkeypatch.setattr(run, "_warm_up", lambda *_: None)
    figures = run.run(mutants=2, seed=7, door="bad")
    assert [row[0] for row in figures.uncaught.values()] == [2]
    assert figures.executed
    assert figures.imported
    assert any("elsewhere" in name for name in figures.outside)
    assert "canary by bad" in figures.outside


def test_an_error_that_is_not_ours_is_counted(monkeypatch):
    def fail(*_):
        raise ZeroDivisionError("x")

    monkeypatch.setattr(run, "_warm_up", lambda *_: None)
    monkeypatch.setattr(layouts, "read", fail)
    figures = run.run(mutants=3, seed=7, door="inspect")
    assert not figures.is_clean
    assert sum(row[0] for row in figures.uncaught.values()) == 3


def test_every_mutation_is_made_again_from_its_number():
    assert run.mutant(1, 5) == run.mutant(1, 5)
    files = seeds.checkpoints()[0]
    assert sum(mutate(files, random.Random(n), files) != files for n in range(50)) > 40
