"""Where recordings are read from, and the files that they are written into."""

from __future__ import annotations

import glob
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, TextIO

from rllib_compat.neutral.errors import ConfigError
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.public import public
from rllib_compat.runtime.offline.lines import to_json


def find_files(source: str | Sequence[str]) -> list[Path]:
    """The files of an `input`: a directory, a pattern, a path, or a list of paths.

    Raises:
        ConfigError: There are none.
    """
    if isinstance(source, str):
        path = Path(source).expanduser()
        pattern = str(path / "*.json") if path.is_dir() else str(path)
        found = sorted(Path(name) for name in glob.glob(pattern, recursive=True))  # noqa: PTH207
    else:
        found = [Path(name).expanduser() for name in source]
    missing = [str(path) for path in found if not path.is_file()]
    if missing or not found:
        raise ConfigError(
            f"No recording is at {', '.join(missing) or source!r}.",
            where="$.input",
            fix="give the directory that `output` wrote into, a pattern, or a list of files",
        )
    return found


@public("rllib_compat.adapters")
@frozen
class Recording:
    """Where and how steps are recorded.

    Attributes:
        path: The directory.
        compress: The columns that are packed.
        max_file_size: After how many bytes a new file begins.
    """

    path: str
    compress: tuple[str, ...] = ("obs", "new_obs")
    max_file_size: int = 64 * 1024 * 1024


class Writer:
    """Writes batches as RLlib's `JsonWriter` did (Ray 0.6 – 2.x, `offline/json_writer.py`).

    Args:
        recording: Where and how.
        worker_index: The worker's number, which is in the name of its files.
    """

    def __init__(self, recording: Recording, worker_index: int) -> None:
        self._recording = recording
        self._folder = Path(recording.path).expanduser()
        self._folder.mkdir(parents=True, exist_ok=True)
        self._worker = worker_index
        self._number = 0
        self._written = 0
        self._file: TextIO | None = None

    def write(self, batch: Any) -> None:
        """Appends one line."""
        line = to_json(batch, self._recording.compress)
        if self._file is None or self._written >= self._recording.max_file_size:
            self._next_file()
        assert self._file is not None
        self._file.write(line + "\n")
        self._file.flush()  # nobody tells a worker when it ends
        self._written += len(line) + 1

    def _next_file(self) -> None:
        if self._file is not None:
            self._file.close()
        now = datetime.fromtimestamp(time.time()).strftime("%Y-%m-%d_%H-%M-%S")
        name = f"output-{now}_worker-{self._worker}_{self._number}.json"
        self._file = (self._folder / name).open("w")
        self._number += 1
        self._written = 0
