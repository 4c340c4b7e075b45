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
    spec = importlib.util.spec_from_file_location("removed_algorithms", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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
