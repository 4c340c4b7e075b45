"""Simulators' files in a store of their own, of which a checkpoint has only the addresses."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from typing import Any

from rllib_compat.runtime.artifacts.reading import open_inside


def upload(
    env_runner: Any, *, folder: str, parts: Sequence[str], size: int, uri: str, piece: int
) -> str | tuple[str, int, int]:
    """Writes a file of a simulator's folder to a store; called on the runner, which has both.

    Args:
        env_runner: The runner; it is not needed.
        folder: The simulator's folder.
        parts: The file's path in it.
        size: How many bytes are written, from the beginning.
        uri: Where to, as `pyarrow.fs` understands it.
        piece: How many bytes are read at once.

    Returns:
        The SHA-256 digest, and the file's size and time of writing afterwards; or why it is not
        there.
    """
    del env_runner
    from pyarrow import fs

    digest, start = hashlib.sha256(), 0
    try:
        store, path = fs.FileSystem.from_uri(uri)
        store.create_dir(path.rpartition("/")[0], recursive=True)
        with open_inside(folder, parts) as file, store.open_output_stream(path) as out:
            while start < size and (found := os.pread(file, min(piece, size - start), start)):
                out.write(found)
                digest.update(found)
                start += len(found)
            after = os.fstat(file)
    except Exception as error:  # each store has errors of its own
        return f"it can't be written to {uri}: {error}"
    if start < size:
        return "it became smaller while it was read"
    return digest.hexdigest(), after.st_size, after.st_mtime_ns


def pieces(uri: str, size: int) -> Iterator[bytes]:
    """What a store has at an address, in pieces.

    Raises:
        FileNotFoundError: Nothing is there.
        ValueError: It can't be read, or there is no pyarrow.
    """
    try:
        from pyarrow import fs

        store, path = fs.FileSystem.from_uri(uri)
        with store.open_input_stream(path) as file:
            while piece := file.read(size):
                yield piece
    except FileNotFoundError:
        raise
    except Exception as error:
        raise ValueError(f"it can't be read from {uri}: {error}") from error
