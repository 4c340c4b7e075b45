"""Records what the operators of an old Ray's execution plans did, case by case.

Usage: `python record.py OUT`, with the Python of an environment that has Ray 1.13.0. It writes
`OUT`, a JSON file; `tests/unit/runtime/test_execution_operators.py` compares.
"""

import importlib
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from operators import play


def find(module, name):
    return getattr(importlib.import_module("ray.rllib." + module), name)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(play(find), indent=1) + "\n")
