"""`rllib-compat inspect CHECKPOINT` against `import ray`, which every tool of Ray pays first."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from pairs import Contender, compare

DEFAULT = Path(__file__).parents[1] / "rllib_compat/demo_data/checkpoint_2"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint", nargs="?", type=Path, default=DEFAULT)
    parser.add_argument("--repetitions", type=int, default=10)
    options = parser.parse_args()
    cli = shutil.which("rllib-compat", path=Path(sys.executable).parent) or "rllib-compat"
    compare(
        Contender("rllib-compat inspect", [cli, "inspect", str(options.checkpoint)], worked=bool),
        Contender("python -c 'import ray'", [sys.executable, "-c", "import ray"]),
        options.repetitions,
    )


if __name__ == "__main__":
    main()
