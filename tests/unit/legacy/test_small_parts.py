"""Parts of Ray 1.13.0, taken by its own imports: they compute what it recorded."""

import runpy
from functools import cache
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("ray")

from rllib_compat import legacy
from tests.marks import OTHERS_WARNINGS

pytestmark = OTHERS_WARNINGS

PARTS = Path(__file__).parents[2] / "legacy" / "parts"


@cache
def computed(group):
    """What the group's script computes with what its imports give today."""
    legacy.activate()  # until the test ends
    return runpy.run_path(str(PARTS / f"{group}.py"))["compute"]()


def recorded(file):
    with np.load(file) as arrays:
        return dict(arrays)


RECORDED = {
    (file.stem, name): value
    for file in sorted((PARTS / "1.13.0").glob("*.npz"))
    for name, value in recorded(file).items()
}


@pytest.mark.parametrize(("group", "name"), RECORDED)
def test_what_a_part_computes_is_what_ray_1_13_did(group, name):
    ours, theirs = computed(group)[name], RECORDED[group, name]
    assert ours.shape == theirs.shape
    assert ours.dtype.kind == theirs.dtype.kind
    if theirs.dtype.kind in "US":
        assert ours.tolist() == theirs.tolist()
    else:
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)
