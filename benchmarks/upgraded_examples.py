"""Upgrades RLlib's own examples of old Rays, and runs what comes out with Python alone.

`python benchmarks/upgraded_examples.py [NAME …]` rewrites each script with `rllib-compat upgrade`,
once more to see that nothing changes any more, and runs it for one iteration, as
`old_examples.py` runs what was not rewritten. It writes `benchmarks/upgraded_examples.md`.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import old_examples

from rllib_compat.upgrade import Target, upgrade

HERE = Path(__file__).parent
RECORD = HERE / "upgraded_examples.json"
TABLE = HERE / "upgraded_examples.md"
LIMIT = 900

#: Scripts of every age that run as they are, no two about the same thing.
SCRIPTS = {
    "0.8.7": "custom_eval custom_rnn_model multi_agent_cartpole rollout_worker_custom_workflow",
    "1.0.1": "centralized_critic custom_fast_model parametric_actions_cartpole",
    "1.2.0": "custom_env custom_metrics_and_callbacks two_step_game custom_observation_filters",
    "2.0.1": "action_masking curriculum_learning custom_logger saving_experiences",
}

HEAD = """# Upgraded examples

RLlib's own example scripts after `rllib-compat upgrade`, run for one iteration without
`rllib-compat run`. Written by `benchmarks/upgraded_examples.py`.

| Ray | script | changes | left to do | a second upgrade | run |
|---|---|--:|--:|---|---|
"""


def upgraded(path: Path) -> dict[str, str | int]:
    """Rewrites a script where it is, runs it, and tells what came of it."""
    first = upgrade(path.read_bytes(), Target.COMPAT, path=str(path))
    second = upgrade(first.after, Target.COMPAT, path=str(path))
    path.write_bytes(first.after)
    return {
        "changes": sum(change.done for change in first.changes),
        "todo": sum(not change.done for change in first.changes),
        "again": "changes nothing" if second.after == first.after else "changes it",
        "outcome": old_examples.run(path, limit=LIMIT, plain=True).outcome,
    }


def main(names: list[str]) -> None:
    """Upgrades and runs the scripts of these names, or all."""
    known = json.loads(RECORD.read_text("utf-8")) if RECORD.exists() else {}
    for release, wanted in SCRIPTS.items():
        with tempfile.TemporaryDirectory() as folder:
            for path in list(old_examples.scripts(release, Path(folder))):
                if path.stem not in wanted.split() or (names and path.stem not in names):
                    continue
                place = f"{release} {path.stem}"
                known[place] = upgraded(path)
                print(place, known[place], flush=True)
                RECORD.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", "utf-8")
    rows = [
        f"| {place.replace(' ', ' | `')}` | {r['changes']} | {r['todo']} | {r['again']} "
        f"| {r['outcome']} |\n"
        for place, r in sorted(known.items())
    ]
    TABLE.write_text(HEAD + "".join(rows), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
