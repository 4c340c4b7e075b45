"""What `AlgorithmConfig.offline_data(input_=…)` gets for a legacy `input`."""

from __future__ import annotations

import ast
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType
from typing import Any

from rllib_compat.neutral.errors import ConfigError
from rllib_compat.neutral.later import PUBLIC, Later, Writer
from rllib_compat.neutral.public import public
from rllib_compat.runtime.offline.files import find_files
from rllib_compat.runtime.offline.lines import from_json

# Converted recordings by their files and the times of their last changes. A folder is deleted when
# the process ends; until then, all configs that read the same files share it.
_FOLDERS: dict[tuple[tuple[str, int], ...], tempfile.TemporaryDirectory[str]] = {}


@dataclass(frozen=True)
class Recorded(Later):
    """Recordings for the offline algorithms of the new API stack.

    Attributes:
        source: A directory, a pattern, a path, or a list of paths.
    """

    source: Any

    def build(self) -> str | list[str]:
        """Converts the recordings; gives the folder that Ray reads."""
        return as_parquet(self.source)

    def code(self, writer: Writer) -> ast.expr | None:
        """The call that converts them."""
        return writer.call(writer.imported(PUBLIC, "as_parquet"), self.source)


@public("rllib_compat.adapters")
@dataclass(frozen=True)
class Readers(Later):
    """Recordings for the old API stack, which reads JSON itself, and unpickles what is in it.

    Attributes:
        source: As of `Recorded`, or a dict of these and `"sampler"` with probabilities.
    """

    source: Any

    def build(self) -> Any:
        """A function of the I/O context that makes the reader, or a dict of such."""
        if isinstance(self.source, Mapping):
            return {_reading(source): part for source, part in self.source.items()}
        return _reading(self.source)

    def code(self, writer: Writer) -> ast.expr | None:
        """The call that makes them."""
        readers = writer.call(writer.imported(PUBLIC, "Readers"), self.source)
        return readers and writer.call(ast.Attribute(readers, "build", ast.Load()))


@public("rllib_compat.adapters")
def as_parquet(source: str | Sequence[str]) -> str | list[str]:
    """Converts recordings to a folder of Parquet, with an episode a row, as Ray writes them.

    Args:
        source: A directory, a pattern, a path, or a list of paths.

    Returns:
        The folder, which lives as long as the process. Recordings that are not there (yet) stay
        what they were called: the translation warns of them, and Ray names them when it reads.
    """
    try:
        files = find_files(source)
    except ConfigError:
        return source if isinstance(source, str) else list(source)
    import msgpack
    import msgpack_numpy
    import pyarrow as pa
    import pyarrow.parquet as pq

    from rllib_compat.runtime.offline.episodes import episodes_of

    key = tuple((str(file), file.stat().st_mtime_ns) for file in files)
    if key not in _FOLDERS:
        folder = tempfile.TemporaryDirectory(prefix="rllib_compat_")
        items = [
            msgpack.packb(episode.get_state(), default=msgpack_numpy.encode)
            for episode in episodes_of(files)
        ]
        table = pa.table({"item": pa.array(items, pa.binary())})
        pq.write_table(table, Path(folder.name) / "episodes.parquet", row_group_size=64)
        _FOLDERS[key] = folder
    return _FOLDERS[key].name


def _reading(source: Any) -> Any:
    """The function that opens a source, where Ray's own reader would execute what is in it."""
    if callable(source) or not _is_recording(source):
        return source

    def read(context: Any) -> Any:
        return _reader_class()([str(file) for file in find_files(source)], context)

    assert isinstance(read, FunctionType)  # Ray takes no other callable
    return read


def _is_recording(source: Any) -> bool:
    from ray.tune.registry import registry_contains_input

    if isinstance(source, (list, tuple)):
        return True
    named = source in ("sampler", "dataset") or source.startswith("d4rl.")
    return not named and "://" not in source and not registry_contains_input(source)


def _reader_class() -> Callable[..., Any]:
    from ray.rllib.offline.json_reader import JsonReader, from_json_data

    class Reader(JsonReader):  # type: ignore[misc]  # Ray has no types
        """Ray's reader; packed columns are unpacked without executing anything."""

        def _from_json(self, data: str) -> Any:
            where = str(getattr(self.cur_file, "name", "input"))
            return from_json_data(from_json(data, where), self.ioctx.worker)

    return Reader
