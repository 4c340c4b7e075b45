"""Small parts of Ray 1.13.0, taken by its own imports: they compute what it recorded."""

import runpy
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("ray")

from rllib_compat import legacy
from tests.marks import OTHERS_WARNINGS

pytestmark = OTHERS_WARNINGS

LOSSES = Path(__file__).parents[2] / "legacy" / "losses"


@pytest.fixture(scope="module")
def computed():
    legacy.activate()
    yield runpy.run_path(str(LOSSES / "record_parts.py"))["compute"]()
    legacy.deactivate()


with np.load(LOSSES / "1.13.0" / "parts.npz") as _file:
    RECORDED = {name: _file[name] for name in _file}


@pytest.mark.parametrize("name", RECORDED)
def test_what_a_part_computes_is_what_ray_1_13_did(computed, name):
    ours = computed[name]
    assert ours.shape == RECORDED[name].shape
    np.testing.assert_allclose(ours, RECORDED[name], rtol=1e-6, atol=1e-6)
    assert ours.dtype.kind == RECORDED[name].dtype.kind
