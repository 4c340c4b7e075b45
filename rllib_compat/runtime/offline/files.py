"""Finds, reads and writes the files of recordings.

A line is a sample batch as JSON. Its columns may be packed: a pickled array, compressed by lz4, in
base64 (Ray 0.6 – 2.x, `rllib/utils/compression.py`). RLlib unpickles it; this module reads it
without executing anything.
"""

from __future__ import annotations

import base64
import binascii
import glob
import json
import pickle
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from rllib_compat.formats.files import disk_errors, open_regular
from rllib_compat.formats.paths import local_path
from rllib_compat.formats.pickles import Budget, load
from rllib_compat.neutral.errors import CompatError, ConfigError, CorruptCheckpointError
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.public import public

ONE_POLICY = "default_policy"
# The legacy name of a column.
DONES = "dones"
# The largest size of a column in bytes; an lz4 frame may claim any size.
LARGEST_COLUMN = 1 << 30


def read_lines(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the batches of a file, by policy.

    Yields:
        The policy's id, and the columns as lists or arrays.

    Raises:
        CorruptCheckpointError: A line is not JSON, not a batch, or cannot be unpacked.
    """
    with disk_errors(file), open_regular(file) as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                record = from_json(line, f"{file}:{number}")
                yield from record.get("policy_batches", {ONE_POLICY: record}).items()


def from_json(line: str | bytes, where: str) -> dict[str, Any]:
    """Reads a line as a record with unpacked columns; see `read_lines`."""
    try:
        record = json.loads(line)
        if list(record) == ["value"]:  # the form of Ray's datasets
            record = record["value"]
        kind = record["type"]
        if kind == "SampleBatch":
            return _unpack(record, where)
        if kind == "MultiAgentBatch":
            batches = record["policy_batches"].items()
            return {**record, "policy_batches": {p: _unpack(b, where) for p, b in batches}}
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise CorruptCheckpointError(
            f"A line of the recording cannot be read: {error!r}.", where=where
        ) from error
    raise CorruptCheckpointError(
        f"A line of the recording has the type {kind!r}.",
        where=where,
        fix="pass files that RLlib has written: their lines are SampleBatch or MultiAgentBatch",
    )


def to_json(batch: Any, compress: Collection[str]) -> str:
    """Converts a `SampleBatch` or `MultiAgentBatch` to a line.

    Raises:
        CompatError: An info has an object that JSON cannot represent.
    """
    if hasattr(batch, "policy_batches"):
        record = {
            "type": "MultiAgentBatch",
            "count": batch.count,
            "policy_batches": {
                policy: _pack(columns, compress) for policy, columns in batch.policy_batches.items()
            },
        }
    else:
        record = {"type": "SampleBatch", **_pack(batch, compress)}
    return json.dumps(record, default=_jsonable)


def pack(column: object) -> str:
    """Packs an array to text that every old Ray can unpack."""
    import lz4.frame

    # Protocol 4 is the newest that Python 3.6 reads.
    data = pickle.dumps(column, protocol=4)
    return base64.b64encode(lz4.frame.compress(data)).decode("ascii")


def unpack(text: str, where: str) -> Any:
    """Unpacks the text of `pack`, without executing anything."""
    import lz4.frame

    try:
        frames = lz4.frame.LZ4FrameDecompressor()
        data = frames.decompress(base64.b64decode(text, validate=True), max_length=LARGEST_COLUMN)
        if not frames.eof:
            raise ValueError(f"it is larger than {LARGEST_COLUMN} bytes, or incomplete")
    except (binascii.Error, RuntimeError, ValueError, EOFError) as error:
        raise CorruptCheckpointError(
            f"A column cannot be unpacked: {error}.", where=where
        ) from error
    return load(data, budget=Budget(), where=where).value


def _pack(batch: Mapping[str, Any], compress: Collection[str]) -> dict[str, Any]:
    columns = {name: batch[name] for name in batch}
    if "terminateds" in columns:
        columns[DONES] = np.logical_or(columns["terminateds"], columns["truncateds"])
    return {name: pack(c) if name in compress else _jsonable(c) for name, c in columns.items()}


def _unpack(columns: Mapping[str, Any], where: str) -> dict[str, Any]:
    return {
        name: unpack(column, f"{where} → {name}")
        if isinstance(column, str) and name != "type"
        else column
        for name, column in columns.items()
    }


def _jsonable(value: object) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    if isinstance(value, Mapping):
        return {name: _jsonable(inner) for name, inner in value.items()}
    if value is None or isinstance(value, (list, tuple, str, int, float, bool)):
        return value
    raise CompatError(
        f"An object of type {type(value).__name__} cannot be recorded as JSON.",
        where="output",
        fix="return only numbers, strings, lists, dicts and arrays in the environment's infos",
    )


def find_files(source: str | Path | Sequence[str | Path]) -> list[Path]:
    """Finds the files of an `input`: a directory, a pattern, a path, or a list of paths.

    Raises:
        ConfigError: There are no files, or one of the list does not exist.
    """
    if isinstance(source, (str, Path)):
        path = local_path(source)
        pattern = str(path / "*.json") if path.is_dir() else str(path)
        found = sorted(Path(name) for name in glob.glob(pattern, recursive=True))  # noqa: PTH207
    else:
        found = [local_path(name) for name in source]
    missing = [str(path) for path in found if not path.is_file()]
    if missing or not found:
        raise ConfigError(
            f"There is no recording at {', '.join(missing) or source!r}.",
            where="$.input",
            fix="pass the directory of `output`, a pattern, or a list of files",
        )
    return found


@public("rllib_compat.adapters")
@frozen
class Recording:
    """The settings for recording steps.

    Attributes:
        path: The directory.
        compress: The columns to pack.
        max_file_size: The size in bytes at which a new file starts.
    """

    path: str
    compress: tuple[str, ...] = ("obs", "new_obs")
    max_file_size: int = 64 * 1024 * 1024


class Writer:
    """Writes batches as RLlib's `JsonWriter` did (Ray 0.6 – 2.x, `offline/json_writer.py`)."""

    def __init__(self, recording: Recording, worker_index: int) -> None:
        self._recording = recording
        self._folder = local_path(recording.path)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._worker = worker_index
        self._number = 0
        self._written = 0
        self._file: TextIO | None = None

    def write(self, batch: Mapping[str, Any]) -> None:
        """Appends one line."""
        line = to_json(batch, self._recording.compress)
        if self._file is None or self._written >= self._recording.max_file_size:
            self._next_file()
        assert self._file is not None
        self._file.write(line + "\n")
        self._file.flush()  # a worker may end at any time
        self._written += len(line) + 1

    def _next_file(self) -> None:
        if self._file is not None:
            self._file.close()
        now = datetime.fromtimestamp(time.time()).strftime("%Y-%m-%d_%H-%M-%S")
        name = f"output-{now}_worker-{self._worker}_{self._number}.json"
        self._file = (self._folder / name).open("w")
        self._number += 1
        self._written = 0
