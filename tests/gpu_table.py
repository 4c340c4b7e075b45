"""The guide's tables of what trains on a GPU, from reports of `tests/integration/test_gpu.py`.

    python -m tests.gpu_table 2.60=gpu260.xml 2.60=again.xml 2.40=gpu240.xml

prints each algorithm with what it asked of GPUs on each Ray, then the other configs, and below them
what failed, with the last line of each error. Of several reports of a Ray, the last one that has a
test counts.
"""

from __future__ import annotations

import collections
import re
import sys
from xml.etree import ElementTree

GPUS = ("0", "0.5", "1")
#: Case → the names of the tests that failed; `None` stands for those that did not run.
Outcomes = dict[str, list[str]]


def outcomes(paths: list[str]) -> tuple[Outcomes, list[str]]:
    """What failed of each case in reports, and the lines that say why."""
    tests = {}
    for path in paths:
        for test in ElementTree.parse(path).iter("testcase"):
            parts = re.match(r"test_(\w+)\[(.+?)\]", test.get("name", ""))
            if parts is not None and test.find("skipped") is None:
                failed = [part for kind in ("failure", "error") for part in test.iter(kind)]
                tests[parts.groups()] = failed
    found: Outcomes = collections.defaultdict(list)
    reasons = []
    for (name, case), failed in tests.items():
        found[case] += [name] * bool(failed)
        for part in failed:
            lines = (part.get("message") or "").strip().splitlines() or ["?"]
            reasons.append(f"{case}: {name.replace('_', ' ')}: {lines[-1][:200]}")
    return found, reasons


def cell(found: Outcomes, case: str) -> str:
    """What a table says of a case: how many of its tests failed."""
    if case not in found:
        return "–"
    return f"{len(found[case])} failed" if found[case] else "yes"


def table(head: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main(arguments: list[str]) -> None:
    """Prints the tables."""
    reports: dict[str, list[str]] = {}
    for argument in arguments:
        ray, path = argument.split("=", 1)
        reports.setdefault(ray, []).append(path)
    found = {ray: outcomes(paths) for ray, paths in reports.items()}
    cases = {case: None for of_ray, _ in found.values() for case in of_ray}
    each = {case.rpartition("-")[0]: None for case in cases if case.rpartition("-")[2] in GPUS}
    head = [f"Ray {ray}, `num_gpus: {gpus}`" for ray in found for gpus in GPUS]
    rows = [
        [name, *(cell(of_ray, f"{name}-{gpus}") for of_ray, _ in found.values() for gpus in GPUS)]
        for name in sorted(each)
    ]
    print(table(["algorithm", *head], rows))
    others = [case for case in cases if case.rpartition("-")[2] not in GPUS]
    rows = [[case, *(cell(of_ray, case) for of_ray, _ in found.values())] for case in others]
    print("\n" + table(["config", *(f"Ray {ray}" for ray in found)], rows))
    for ray, (_, reasons) in found.items():
        print("", *(f"- Ray {ray}, {reason}" for reason in reasons), sep="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
