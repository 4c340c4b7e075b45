"""What a verb writes when the disk is full, or the user presses Ctrl-C, is not half there."""

import itertools

import pytest

from tests.marks import marked
from tests.security import broken_off

#: They take seconds to start.
SLOW = {"convert --to onnx", "plot", "evaluate --out"}


@pytest.mark.parametrize("verb", marked(broken_off.WRITERS, broken_off.WRITERS.keys() - SLOW))
def test_a_writer_that_is_broken_off_leaves_nothing_half(verb, tmp_path):
    """`python -m tests.security.broken_off` does each at each moment."""
    moments, wrong = broken_off.write(verb, tmp_path / "whole")
    assert not wrong
    refusals = itertools.cycle(broken_off.REFUSALS)
    for moment in range(moments):
        refusal = next(refusals)
        _, wrong = broken_off.write(verb, tmp_path / f"{moment}", moment, refusal)
        assert not wrong, (moment, refusal)
