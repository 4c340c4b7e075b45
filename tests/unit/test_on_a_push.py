"""Which Rays a push runs, and what the record of durations says."""

import pytest

from tests import durations
from tests.ray_releases.on_a_push import BETWEEN, environments

REPORT = """<testsuites><testsuite>
<testcase classname="tests.integration.test_tune" name="test_long" time="31.5">
<properties><property name="ray" value=""/>{reason}</properties></testcase>
<testcase classname="tests.unit.test_cli" name="test_without_ray" time="40.0"/>
</testsuite></testsuites>"""
REASON = '<property name="slow" value="it trains until it has learned"/>'


def test_a_push_runs_the_newest_ray_the_oldest_and_two_between():
    chosen = [environments(f"{number:040x}", touches_ray=False) for number in range(6)]
    assert all(run[:5] == chosen[0][:5] and len(run) == 7 for run in chosen)
    assert "ray260" in chosen[0]
    assert {ray for run in chosen for ray in run[5:]} == set(BETWEEN)


def test_a_push_that_changes_what_touches_ray_runs_all_four_between():
    assert environments("0" * 40, touches_ray=True)[5:] == BETWEEN


@pytest.mark.parametrize(("reason", "status"), [("", 1), (REASON, 0)], ids=["none", "given"])
def test_a_slow_test_that_starts_ray_needs_a_reason(tmp_path, capsys, reason, status):
    report = tmp_path / "ray260.integration.xml"
    report.write_text(REPORT.format(reason=reason))
    assert durations.main([report]) == status
    told = capsys.readouterr().out
    assert "2 tests, 1.2 minutes" in told
    assert ("without a reason: tests/integration/test_tune.py::test_long" in told) is bool(status)
