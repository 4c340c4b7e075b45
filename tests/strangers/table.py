"""Makes the table of strangers' scripts, of what `play.py` has written here.

    rllib-compat run tests/strangers/play.py FACTS.json SCRIPT…
    python -m tests.strangers.table FACTS.json…                  writes README.md beside this file

`--record FACTS.json…` takes what `play.py` has written inside old Rays into `recorded.json`.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from tests.strangers.cases import CASES, DIFFERENCES, FOLDER, KINDS, RECORDED, outcome, recorded

_HEAD = """\
# Strangers' scripts

What people did with RLlib in public, each written anew as a small script, run unchanged by
`rllib-compat run` on Ray 2.60 and held against what it noted inside the old Ray: episodes, steps,
rewards, calls of callbacks, keys of results, shapes of spaces and weights. `python -m
tests.strangers.table` made this page.

"""


def read(files: list[str]) -> dict[str, Any]:
    """What files of `play.py` hold; of a script in several, what it did last."""
    return {k: v for file in files for k, v in json.loads(Path(file).read_text("utf-8")).items()}


def record(files: list[str]) -> None:
    """Takes facts out of old Rays into `recorded.json`; a script that failed there has none."""
    recorders = {case.script: case.recorder for case in CASES}
    known = recorded() if RECORDED.exists() else {}
    played = {name: facts for name, facts in read(files).items() if "failed" not in facts}
    kept = {name: facts for name, facts in {**known, **played}.items() if recorders.get(name)}
    RECORDED.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def page(found: dict[str, Any]) -> str:
    """The page, of what scripts have noted here."""
    kinds: dict[str, Counter[str]] = {}
    rows = []
    for case in CASES:
        kind = "not run" if case.script not in found else outcome(case, found[case.script]).kind
        kinds.setdefault(case.theme, Counter())[kind] += 1
        whys = "; ".join(DIFFERENCES.get(case.script, {}).values())
        source = f"[{case.source.removeprefix('https://github.com/')}]({case.source})"
        rows.append(
            f"| {case.script} | {source} | {case.ray} | {case.recorder} | {kind} | {whys} |"
        )
    columns = [*KINDS, "not run"]
    totals = sum(kinds.values(), Counter())
    counts = [
        "| theme | " + " | ".join(columns) + " |",
        "|" + "---|" * (len(columns) + 1),
        *(
            f"| {theme} | " + " | ".join(str(counted[kind] or "") for kind in columns) + " |"
            for theme, counted in [*sorted(kinds.items()), ("all", totals)]
        ),
    ]
    head = "| script | where somebody did so | written for | recorded by | here | why |"
    return _HEAD + "\n".join([*counts, "", head, "|" + "---|" * 6, *rows]) + "\n"


if __name__ == "__main__":
    if sys.argv[1] == "--record":
        record(sys.argv[2:])
    else:
        (FOLDER / "README.md").write_text(page(read(sys.argv[1:])), encoding="utf-8")
