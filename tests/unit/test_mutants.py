"""The list of breaks that the tests are measured with (`python -m tests.mutation`)."""

import ast

import pytest

from tests.mutation.__main__ import ROOT, key
from tests.mutation.mutants import MUTANTS


@pytest.mark.parametrize("mutant", MUTANTS, ids=key)
def test_a_break_still_fits_its_file(mutant):
    ast.parse(mutant.applied((ROOT / mutant.file).read_text()))
    assert all((ROOT / test.partition("::")[0]).exists() for test in mutant.tests)
