"""A small file ends in little memory and time, whatever it stands for; the figures: `bombs.py`."""

from __future__ import annotations

import pytest

from tests.security import bombs


@pytest.mark.parametrize("bomb", bombs.BOMBS)
def test_a_bomb_does_not_go_off(bomb):
    row = bombs.cost(bomb)
    assert not any(outcome.startswith("UNCAUGHT") for outcome in row["outcomes"].values()), row
    assert set(row["outcomes"]) == {"inspect", "convert", "names"}
    assert row["memory"] < 20 * row["size"] + 100_000_000
    # Seconds of the processor, for three doors.
    assert row["seconds"] < 3 * 5 * max(1, row["size"] / 10_000_000)
