"""The list of breaks that the tests are measured with (`python -m tests.mutation`)."""

import ast

import pytest

from tests.mutation.__main__ import ENOUGH, ROOT, key, recorded
from tests.mutation.mutants import MUTANTS


@pytest.mark.parametrize("mutant", MUTANTS, ids=key)
def test_a_break_still_fits_its_file(mutant):
    ast.parse(mutant.applied((ROOT / mutant.file).read_text()))
    assert all((ROOT / test.partition("::")[0]).exists() for test in mutant.tests)


def test_every_break_was_measured_and_nine_in_ten_were_noticed():
    """Where this fails, run `python -m tests.mutation --only … --write`."""
    rows = recorded()
    assert list(rows) == [key(mutant) for mutant in MUTANTS]
    assert sum(row["noticed"] for row in rows.values()) >= ENOUGH * len(rows)
