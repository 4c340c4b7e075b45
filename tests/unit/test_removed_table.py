"""The guide's table of removed algorithms is what its script makes, and leaves none out."""

import importlib.util
import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from rllib_compat import registry

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "removed_algorithms.py"


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(SCRIPT.parent)
    return importlib.import_module("removed_algorithms")


def test_the_page_shows_what_was_measured(script):
    differences, examples = (
        json.loads(path.read_text("utf-8")) for path in (script.RESULTS, script.EXAMPLES)
    )
    page = script.guide_tables
    made = page.begin(SCRIPT.stem) + script.table(differences, examples)
    assert made in page.PAGE.read_text("utf-8"), "run benchmarks/removed_algorithms.py"
    for name in (row.name for row in registry.ALGORITHMS.values() if row.ours):
        assert f"\n| {name} |" in made
        if name in script.LEARNS_AS:
            continue
        assert differences[name]["update"] < 1e-4
        assert name in script.WITHOUT_LOSS or differences[name]["loss"] < 1e-5


def test_a_difference_is_that_of_its_algorithm_and_the_largest(script):
    report = ElementTree.fromstring(
        """<testsuite>
        <testcase classname="tests.unit.algorithms.test_losses" name="test_of_ray_1_13[a2c-1]">
          <properties><property name="loss" value="1e-7"/></properties></testcase>
        <testcase classname="tests.unit.algorithms.test_losses" name="test_of_ray_1_13[a2c-2]">
          <properties><property name="loss" value="3e-7"/></properties></testcase>
        <testcase classname="tests.unit.algorithms.test_losses" name="test_of_ray_1_13[pg-1]">
          <properties><property name="loss" value="9e-7"/></properties></testcase>
        </testsuite>"""
    )
    found = script.largest(report.iter("testcase"))
    assert (found["A2C"], found["PG"], found["TD3"]) == ({"loss": 3e-7}, {"loss": 9e-7}, {})


def _run(seed, old, ours):
    """What was recorded of a run: after how many steps each side had got there, and its speed."""
    sides = {
        side: {
            "ray": "1.13.0",
            "reached_after": steps,
            "reward_at_equal_steps": 100.0 + seed,
            "steps_per_cpu_second": speed,
        }
        for side, (steps, speed) in {"old": old, "ours": ours}.items()
    }
    told = {"example": "cartpole-pg", "algorithm": "PG", "reward": 150, "steps": 5000}
    return {**told, "seed": seed, "sides": sides}


def test_several_seeds_of_an_example_are_one_row_of_medians(script):
    runs = [_run(0, (100, 9.0), (300, 6.0)), _run(1, (200, 10.0), (100, 5.0))]
    (row,) = script.seeds.rows([*runs, _run(2, (400, 10.0), (None, 9.0))])
    assert row.seeds == [0, 1, 2]
    assert row.needed == {"old": 200, "ours": 300}  # the one that did not get there is the last
    assert row.arrived == {"old": 3, "ours": 2}
    assert (row.learning, row.speed) == (1.5, 6 / 9)
    assert row.returns == {"old": 101, "ours": 101}


def test_there_is_no_ratio_of_steps_where_half_of_the_runs_did_not_get_there(script):
    runs = [_run(0, (100, 9.0), (300, 6.0)), _run(1, (200, 10.0), (None, 5.0))]
    (row,) = script.seeds.rows(runs)
    assert row.learning is None
    assert script._steps(row) == "cartpole-pg: cut off after 5,000 at returns of 100 and 100"
