"""The command line in a process of its own, as people start it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "OMP_NUM_THREADS": "1",
    "PYTHONPATH": str(ROOT),
}


def start(folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Runs `rllib-compat` in a folder until it ends."""
    return start_python(folder, "-m", "rllib_compat", *arguments)


def start_python(
    folder: Path, *arguments: object, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Runs Python in a folder until it ends."""
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=folder,
        env={**os.environ, **ENVIRONMENT, **environment},
        capture_output=True,
        text=True,
        timeout=550,
        check=False,
    )
