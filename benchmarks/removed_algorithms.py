"""One table of the algorithms that Ray removed and this package has, beside the old ones.

DQN has a row for what Ray removed of it, and SimpleQ since it is DQN today.

The tests that hold our losses and updates against what old Rays recorded are run, and tell their
largest differences; steps and speed are those that `beside_old_ray.py` has recorded; and the
package's registry says whether training goes on from old checkpoints::

    python benchmarks/removed_algorithms.py
    python benchmarks/removed_algorithms.py --stored    # with the differences that it has recorded

Differences go into `removed_algorithms.json`, the table into the guide
(`migration_guide/removed_algorithms.md`).
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import guide_tables
import seeds

from rllib_compat import registry

HERE = Path(__file__).parent
TESTS = HERE.parent / "tests" / "unit" / "algorithms"
RESULTS = HERE / "removed_algorithms.json"
EXAMPLES = HERE / "beside_old_ray.json"

#: Algorithm → the file of its tests, and what the names of those tests have in them.
TESTS_OF = {
    "A2C": ("test_losses", "[a2c", "ray_1_13"),
    "A3C": ("test_losses", "a3c_worker"),
    "ARS": ("test_evolution", "updates_give", "[ars"),
    "BanditLinTS": ("test_bandits", "posterior_are", "[ts"),
    "BanditLinUCB": ("test_bandits", "posterior_are", "[ucb"),
    "CRR": ("test_crr", "ray_2_0"),
    "DDPG": ("test_ddpg_losses", "ray_1_13", "[ddpg"),
    "DQN": ("test_dqn_losses", "old_ray", "[dqn"),
    "ES": ("test_evolution", "updates_give", "[es"),
    "MADDPG": ("test_maddpg", "an_update_are"),
    "PG": ("test_losses", "[pg-", "ray_1_13"),
    "QMIX": ("test_qmix", "ray_1_13"),
    "R2D2": ("test_r2d2", "ray_1_13"),
    "RNNSAC": ("test_rnnsac", "ray_1_13"),
    "SimpleQ": ("test_dqn_losses", "old_ray", "[simple"),
    "TD3": ("test_ddpg_losses", "ray_1_13", "[td3"),
}
#: Whose learner makes the updates of an algorithm that has none of its own.
LEARNS_AS = {
    "APEX": "DQN's",
    "APEX_DDPG": "DDPG's",
    "DDPPO": "PPO's",
    "Random": "it learns nothing",
}
#: What has no loss at all: returns of perturbed weights, or a posterior.
WITHOUT_LOSS = ("ARS", "BanditLinTS", "BanditLinUCB", "ES")
KINDS = ("loss", "update")
HEAD = (
    "| algorithm | losses, gradients | weights after an update | steps, of the old Ray's "
    "| steps per CPU second, of the old Ray's | old checkpoints |\n|---|---|---|---|---|---|\n"
)

Differences = dict[str, dict[str, float]]


def measured() -> Differences:
    """The largest differences of each algorithm, of tests that are run now."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        command = [sys.executable, "-m", "pytest", "-q", f"--junitxml={report}", str(TESTS)]
        if subprocess.run([*command, "-m", "not ray"], cwd=HERE.parent, check=False).returncode:
            sys.exit("The tests that compare failed.")
        return largest(ElementTree.parse(report).iter("testcase"))


def largest(cases: Iterable[ElementTree.Element]) -> Differences:
    """Algorithm → what was compared → the largest difference that a test has told."""
    found: Differences = {name: {} for name in TESTS_OF}
    for case in cases:
        told = {p.get("name", ""): float(p.get("value", "")) for p in case.iter("property")}
        for name in filter(lambda name: _is_of(case, name), TESTS_OF):
            for kind, difference in told.items():
                found[name][kind] = max(found[name].get(kind, 0.0), difference)
    return found


def _is_of(case: ElementTree.Element, algorithm: str) -> bool:
    file, *parts = TESTS_OF[algorithm]
    name = case.get("name", "")
    return case.get("classname", "").endswith(f".{file}") and all(part in name for part in parts)


def table(differences: Differences, examples: Mapping[str, Any]) -> str:
    """A row for each algorithm of this package, and for those whose losses are compared."""
    of = [row for row in registry.ALGORITHMS.values() if row.ours or row.name in TESTS_OF]
    rows = (_row(row, differences, examples) for row in of)
    return "\n" + HEAD + "".join(sorted(rows))


def _row(row: Any, differences: Differences, examples: Mapping[str, Any]) -> str:
    if row.name in LEARNS_AS:
        equal = [LEARNS_AS[row.name]] * 2
    else:
        told = [differences[row.name].get(kind) for kind in KINDS]
        equal = ["not compared" if value is None else f"{value:.1e}" for value in told]
    if row.name in WITHOUT_LOSS:
        equal[0] = "has none"
    told_of = seeds.rows(examples.values())
    runs = [run for run in told_of if registry.find(run.algorithm) == row]
    steps = [_steps(run) for run in runs]
    speed = [f"{run.example}: {run.speed:.2f}" for run in runs]
    resumes = "resume training" if row.reader else "not read"
    cells = [row.name, *equal, *("; ".join(c) or "not measured" for c in (steps, speed)), resumes]
    return "| " + " | ".join(cells) + " |\n"


def _steps(run: seeds.Row) -> str:
    if run.learning is not None:
        return f"{run.example}: {run.learning:.2f}"
    ours, old = (seeds.told(run.returns[side]) for side in ("ours", "old"))
    return f"{run.example}: cut off after {run.steps:,} at returns of {ours} and {old}"


def write(differences: Differences) -> None:
    """Writes the differences, and the table into the guide."""
    RESULTS.write_text(json.dumps(differences, indent=1, sort_keys=True) + "\n", "utf-8")
    made = table(differences, json.loads(EXAMPLES.read_text("utf-8")))
    guide_tables.put("removed_algorithms", made)


if __name__ == "__main__":
    stored = sys.argv[1:] == ["--stored"]
    write(json.loads(RESULTS.read_text("utf-8")) if stored else measured())
