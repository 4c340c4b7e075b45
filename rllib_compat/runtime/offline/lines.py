"""One line of a recording: a sample batch as JSON, with columns that may be packed.

A packed column is a pickled array, compressed by lz4, in base64 (Ray 0.6 – 2.x,
`rllib/utils/compression.py`). RLlib unpickles it; here it is read without executing anything.
"""

from __future__ import annotations

import base64
import binascii
import json
import pickle
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rllib_compat.formats.pickles import Budget, load
from rllib_compat.neutral.errors import CompatError, CorruptCheckpointError

ONE_POLICY = "default_policy"
# What old readers call a column that has another name today.
DONES = "dones"
# An lz4 frame may say that it holds more than any memory; this is what a column may take.
LARGEST_COLUMN = 1 << 30


def read_lines(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The batches of a file, by policy.

    Yields:
        The policy's id, and the columns as lists or arrays, all of one length.

    Raises:
        CorruptCheckpointError: A line is no JSON, no batch, or packed in no way that RLlib knew.
    """
    with file.open() as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                record = from_json(line, f"{file}:{number}")
                yield from record.get("policy_batches", {ONE_POLICY: record}).items()


def from_json(line: str, where: str) -> dict[str, Any]:
    """A line as the record that it is, with its columns unpacked; see `read_lines`."""
    try:
        record = json.loads(line)
        kind = record["type"]
        if kind == "SampleBatch":
            return _unpacked(record, where)
        if kind == "MultiAgentBatch":
            batches = record["policy_batches"].items()
            return {**record, "policy_batches": {p: _unpacked(b, where) for p, b in batches}}
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise CorruptCheckpointError(
            f"A line of a recording can't be read: {error!r}.", where=where
        ) from error
    raise CorruptCheckpointError(
        f"A line of a recording has the type {kind!r}.",
        where=where,
        fix="RLlib wrote SampleBatch and MultiAgentBatch",
    )


def to_json(batch: Any, compress: Collection[str]) -> str:
    """A `SampleBatch` or `MultiAgentBatch` as one line.

    Args:
        batch: The batch.
        compress: The columns to pack.

    Raises:
        CompatError: An info holds an object that JSON has no form for.
    """
    if hasattr(batch, "policy_batches"):
        record = {
            "type": "MultiAgentBatch",
            "count": batch.count,
            "policy_batches": {
                policy: _packed(columns, compress)
                for policy, columns in batch.policy_batches.items()
            },
        }
    else:
        record = {"type": "SampleBatch", **_packed(batch, compress)}
    return json.dumps(record, default=_jsonable)


def pack(column: Any) -> str:
    """An array as text that every old Ray can unpack."""
    import lz4.frame

    # Protocol 4 is the newest that Python 3.6 reads.
    data = pickle.dumps(column, protocol=4)
    return base64.b64encode(lz4.frame.compress(data)).decode("ascii")


def unpack(text: str, where: str) -> Any:
    """What `pack` packed, read without executing anything."""
    import lz4.frame

    try:
        frames = lz4.frame.LZ4FrameDecompressor()
        data = frames.decompress(base64.b64decode(text, validate=True), max_length=LARGEST_COLUMN)
        if not frames.eof:
            raise ValueError(f"it holds more than {LARGEST_COLUMN} bytes, or not all of them")
    except (binascii.Error, RuntimeError, ValueError, EOFError) as error:
        raise CorruptCheckpointError(
            f"A packed column can't be unpacked: {error}.", where=where
        ) from error
    return load(data, budget=Budget(), where=where).value


def _packed(batch: Mapping[str, Any], compress: Collection[str]) -> dict[str, Any]:
    columns = {name: batch[name] for name in batch}
    if "terminateds" in columns:
        columns[DONES] = np.logical_or(columns["terminateds"], columns["truncateds"])
    return {name: pack(c) if name in compress else _jsonable(c) for name, c in columns.items()}


def _unpacked(columns: Mapping[str, Any], where: str) -> dict[str, Any]:
    return {
        name: unpack(column, f"{where} → {name}")
        if isinstance(column, str) and name != "type"
        else column
        for name, column in columns.items()
    }


def _jsonable(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    if isinstance(value, Mapping):
        return {name: _jsonable(inner) for name, inner in value.items()}
    if value is None or isinstance(value, (list, tuple, str, int, float, bool)):
        return value
    raise CompatError(
        f"A recording can't hold an object of type {type(value).__name__}.",
        where="output",
        fix="put only numbers, texts, lists, dicts and arrays into the environment's infos",
    )
