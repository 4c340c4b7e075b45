"""How long each part of a run took, from the reports that pytest left.

    python -m tests.durations [REPORT.xml …]

Without arguments it reads `.tox/reports`. It names the slowest tests, and those that start Ray,
take more than 20 seconds and give no reason for it (`@pytest.mark.slow("why")`); its exit status is
1 if there are any. A busy machine makes tests slow: the nightly run is asked, a push only prints.
"""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

REPORTS = Path(__file__).parents[1] / ".tox/reports"
SLOW = 20.0


@dataclass(frozen=True)
class Duration:
    """How long a test took.

    Attributes:
        test: Its file and name.
        seconds: With its fixtures.
        starts_ray: Whether it is one of the tests that start Ray.
        reason: Why it may be slow; "" where none is given.
    """

    test: str
    seconds: float
    starts_ray: bool
    reason: str


def read(report: Path) -> Iterator[Duration]:
    """The tests of a report."""
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        told = {row.get("name"): row.get("value", "") for row in case.iter("property")}
        name = f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name')}"
        seconds = float(case.get("time", 0))
        yield Duration(name, seconds, "ray" in told, told.get("slow", ""))


def main(paths: list[Path]) -> int:
    """Prints the table; whether a slow test has no reason."""
    unexplained = 0
    for report in paths or sorted(REPORTS.glob("*.xml")):
        tests = sorted(read(report), key=lambda test: -test.seconds)
        minutes = sum(test.seconds for test in tests) / 60
        print(f"{report.stem}: {len(tests)} tests, {minutes:.1f} minutes of one process")
        for test in tests[:5]:
            print(f"    {test.seconds:5.1f} s  {test.test}")
        for test in tests:
            if test.starts_ray and test.seconds > SLOW and not test.reason:
                unexplained += 1
                print(f"    more than {SLOW:.0f} s, without a reason: {test.test}")
    return int(unexplained > 0)


if __name__ == "__main__":
    sys.exit(main([Path(argument) for argument in sys.argv[1:]]))
