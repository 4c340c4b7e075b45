"""A small file ends in little memory and time, whatever it stands for; the figures: `bombs.py`."""

from __future__ import annotations

import pytest

from tests.marks import marked
from tests.security import bombs

#: Of what is alike and as costly, a push tries one.
LIKE_OTHERS = {
    *("many binaries", "empty dicts", "empty deques", "names", "deques that are read"),
    *("msgpack of empty maps", "many texts that backtrack", "a discrete of our own"),
}


@pytest.mark.parametrize("bomb", marked(bombs.BOMBS, bombs.BOMBS.keys() - LIKE_OTHERS))
def test_a_bomb_does_not_go_off(bomb):
    row = bombs.cost(bomb)
    assert not any(outcome.startswith("UNCAUGHT") for outcome in row["outcomes"].values()), row
    assert set(row["outcomes"]) == {"inspect", "convert", "names"}
    assert row["memory"] < 20 * row["size"] + 100_000_000
    # Seconds of the processor, for three doors.
    assert row["seconds"] < 3 * 5 * max(1, row["size"] / 10_000_000)
