"""A source that changes while it is read is an error, at every door."""

import itertools

import pytest

from tests.marks import marked
from tests.security import changing

#: They take seconds to start.
SLOW = {"config", "upgrade"}


@pytest.mark.parametrize("door", marked(changing.DOORS, changing.DOORS.keys() - SLOW))
def test_a_source_that_changes_while_it_is_read_ends_no_process(door, tmp_path):
    """`python -m tests.security.changing 60` does all of it at each moment, and at random."""
    moments, _ = changing.read(door, tmp_path / "undisturbed")
    faults = itertools.cycle(changing.FAULTS)
    for moment in range(0, moments, max(moments // 8, 1)):
        fault = next(faults)
        changing.read(door, tmp_path / f"{moment} {fault}", moment, fault)
