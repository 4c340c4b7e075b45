"""How long an iteration is at least is what Ray 1.13.0 made of the keys that said so.

`tests/legacy/losses/record_iterations.py` asked A2C, whose train batch has 200 steps.
"""

import json
from pathlib import Path

import pytest

from rllib_compat import translate
from rllib_compat.neutral import Verdict

LOSSES = Path(__file__).parents[2] / "legacy" / "losses"
RECORDED = json.loads((LOSSES / "1.13.0" / "iterations.json").read_text())


@pytest.mark.parametrize("case", RECORDED)
def test_an_iteration_has_as_many_steps_as_it_had(case):
    told = RECORDED[case]
    made = translate(told["config"], algorithm="A2C", legacy_ray="1.13.0")
    least = made.calls.get("reporting", {}).get("min_sample_timesteps_per_iteration") or 0
    assert max(200, least) == told["steps"]


def test_a_key_that_a_ray_passed_over_is_told_and_counts_in_others():
    config = RECORDED["new key"]["config"]
    made = translate(config, algorithm="A2C", legacy_ray="1.13.0")
    (row,) = (f for f in made.report if f.path == "$.min_sample_timesteps_per_reporting")
    assert (row.verdict, bool(row.hint)) == (Verdict.DROPPED, True)
    made = translate(config, algorithm="A2C", legacy_ray="today")
    assert made.calls["reporting"]["min_sample_timesteps_per_iteration"] == 400
