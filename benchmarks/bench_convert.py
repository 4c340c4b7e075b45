"""`rllib-compat convert OLD NEW` against importing RLlib and torch, which it can't do without.

What is above 1 is what a conversion itself costs: reading, building, writing and the proof.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from pairs import Contender, compare

DEFAULT = Path(__file__).parents[1] / "rllib_compat/demo_data"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint", nargs="?", type=Path, default=DEFAULT)
    parser.add_argument("--repetitions", type=int, default=10)
    options = parser.parse_args()
    compare_with_imports(options.checkpoint, options.repetitions)


def compare_with_imports(checkpoint: Path, repetitions: int) -> float:
    """Prints both medians; returns how many times faster the conversion is."""
    cli = [sys.executable, "-m", "rllib_compat", "convert", str(checkpoint)]
    imports = "import torch, ray.rllib"
    with tempfile.TemporaryDirectory() as folder:
        new = Path(folder) / "new"
        return compare(
            Contender(
                "rllib-compat convert",
                [*cli, str(new)],
                prepare=lambda: shutil.rmtree(new, ignore_errors=True),
                worked=lambda output: "resumes training" in output,
            ),
            Contender(f"python -c '{imports}'", [sys.executable, "-c", imports]),
            repetitions,
        )


if __name__ == "__main__":
    main()
