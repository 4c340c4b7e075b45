"""Records what parts of an old Ray compute: `python record.py GROUP OUT.npz`.

GROUP is a script of this folder: its `QUESTIONS` are functions that put answers into a dict, by
name. It runs with the Python (3.7 and later) of an environment that has the script's Ray;
`tests/unit/legacy/test_small_parts.py` asks the same of what old imports give today, and compares.
"""

import runpy
import sys
from pathlib import Path

import numpy as np


def compute(group):
    """Every answer, by name, as an array."""
    script = str(Path(__file__).resolve().parent / (group + ".py"))
    found = {}
    for ask in runpy.run_path(script)["QUESTIONS"]:
        ask(found)
    return {name: as_array(value) for name, value in found.items()}


def as_array(value):
    """An answer as an array of its own, which later answers do not change."""
    return np.array(value.detach().numpy() if hasattr(value, "detach") else value)


if __name__ == "__main__":
    np.savez_compressed(sys.argv[2], **compute(sys.argv[1]))
