"""Files of recorded episodes: one per iteration, written atomically, as JSON lines or Parquet."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rllib_compat.formats.atomic import atomic_file
from rllib_compat.formats.files import disk_errors, parse_record, read_lines
from rllib_compat.formats.paths import local_path
from rllib_compat.neutral.budget import Budget
from rllib_compat.neutral.errors import CheckpointError, CompatError, CorruptCheckpointError

FOLDER = "episode_data"
FORMATS = ("jsonl", "parquet")
_NAME = re.compile(r"(train|evaluation)-(\d{8,})(?:-(\d+))?\.(jsonl|parquet)")
#: The columns of each row of Parquet, other than those of its data.
_HEAD = ("iteration", "evaluation", "worker", "env", "episode", "time", "length", "reward")
#: The kinds of data with one value per name.
_FLAT = ("final", "media", "media_left_out")
#: The metadata of a column of JSON strings.
_JSON = {b"encoding": b"json"}


class EpisodeFiles:
    """The writer of a trial's files in a pyarrow filesystem; None: this machine's."""

    def __init__(self, filesystem: Any, trial: str, folder: str, kind: str) -> None:
        self._filesystem, self._folder, self._kind = filesystem, f"{trial}/{folder}", kind
        self._last: dict[bool, tuple[int, int]] = {}
        if filesystem is None:
            Path(self._folder).mkdir(parents=True, exist_ok=True)
        else:
            filesystem.create_dir(self._folder, recursive=True)

    def write(self, lines: Sequence[str], *, iteration: int, evaluation: bool) -> None:
        """Writes the episodes of an iteration, a JSON object each.

        Files of a run that was restored from an earlier checkpoint are replaced.
        """
        last, part = self._last.get(evaluation, (None, 0))
        part = part + 1 if last == iteration else 1
        self._last[evaluation] = iteration, part
        name = f"{'evaluation' if evaluation else 'train'}-{iteration:08d}"
        name += f"-{part}" if part > 1 else ""
        head = json.dumps({"iteration": iteration, "evaluation": evaluation})[:-1]
        whole = [f"{head}, {line[1:]}\n" for line in lines]
        data = "".join(whole).encode() if self._kind == "jsonl" else _parquet(whole)
        self._put(f"{self._folder}/{name}.{self._kind}", data)

    def _put(self, path: str, data: bytes) -> None:
        if self._filesystem is None:
            with atomic_file(Path(path)) as file:
                file.write(data)
            return
        with self._filesystem.open_output_stream(path) as stream:
            stream.write(data)


def read_episodes(path: str | Path) -> Iterator[dict[str, Any]]:
    """Reads the episodes of an `EpisodeRecorder`, in the order of their iterations.

    Args:
        path: A trial's folder, the folder of the files in it, or one of the files.

    Yields:
        One dict per episode: `iteration`, `evaluation` (whether it is one of an evaluation),
        `worker`, `env` (its index), `episode` (a number), `time` (in s since 1970), `length`,
        `reward`; then `running`, `final` and `media`, or, with several agents, `agents`: by agent,
        a dict with these, `policy` and `reward`.

    Raises:
        CheckpointError: There are no such files.
        CorruptCheckpointError: A file is damaged.
    """
    with disk_errors(path):
        for file in _find_files(local_path(path)):
            yield from _read_parquet(file) if file.suffix == ".parquet" else _read_lines(file)


def _find_files(path: Path) -> list[Path]:
    if path.is_file():
        files = [path]
    else:
        folder = path / FOLDER if (path / FOLDER).is_dir() else path
        found = (p for p in folder.glob("*") if p.is_file())
        names = {p: m for p in found if (m := _NAME.fullmatch(p.name))}
        files = sorted(names, key=lambda p: (int(names[p][2]), names[p][1], int(names[p][3] or 1)))
    if not files:
        raise CheckpointError(
            "There are no recorded episodes.",
            where=str(path),
            fix="Pass the folder of a trial with EpisodeRecorder.",
        )
    return files


def _read_lines(file: Path) -> Iterator[dict[str, Any]]:
    for where, line in read_lines(file):
        yield parse_record(line, where)


def _parquet(lines: Sequence[str]) -> bytes:
    """Converts lines to a Parquet table with a row for each agent of each episode."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = []
    for line in lines:
        episode = json.loads(line)
        head = {name: episode[name] for name in _HEAD}
        for agent, data in episode.get("agents", {None: episode}).items():
            row = {**head, "agent": agent, "policy": data.get("policy")}
            row["agent_reward"] = data["reward"]
            rows.append(row | _columns(data))
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {name: _column(name, [row.get(name) for row in rows]) for name in names}
    schema = pa.schema([field for field, _ in columns.values()])
    table = pa.table([array for _, array in columns.values()], schema)
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return bytes(sink.getvalue())


def _columns(data: dict[str, Any]) -> dict[str, Any]:
    found = {
        f"running/{name}/{part}": value
        for name, series in data["running"].items()
        for part, value in series.items()
    }
    for kind in _FLAT:
        found |= {f"{kind}/{name}": value for name, value in data.get(kind, {}).items()}
    return found


def _column(name: str, values: list[Any]) -> tuple[Any, Any]:
    """Converts a column to the type that pyarrow infers, or to JSON strings if it cannot.

    Numbers of the environment are always doubles: the next iteration may have others than integers.
    """
    import pyarrow as pa

    try:
        if any(_has_dict(value) for value in values):
            raise pa.ArrowInvalid("a dict would have the keys of all others")
        array = pa.array(values)
        if name.startswith(("running/", "final/")) and not name.endswith("/count"):
            number, several = pa.float64(), pa.list_(pa.float64())
            doubles = {pa.int64(): number, pa.list_(pa.int64()): several}
            array = array.cast(doubles.get(array.type, array.type))
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        texts = [None if value is None else json.dumps(value) for value in values]
        return pa.field(name, pa.string(), metadata=_JSON), pa.array(texts, pa.string())
    return pa.field(name, array.type), array


def _has_dict(value: object) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and any(map(_has_dict, value)))


def _read_parquet(file: Path) -> Iterator[dict[str, Any]]:
    episode: dict[str, Any] = {}
    for row in _rows(file):
        try:
            head = {name: row.pop(name) for name in _HEAD}
            agent, policy, reward = row.pop("agent"), row.pop("policy"), row.pop("agent_reward")
            data = _nested({name: value for name, value in row.items() if value is not None})
            if agent is None:
                yield head | data
                continue
            if not isinstance(agent, str):
                raise TypeError(f"an agent is called {agent!r}"[:100])
            if {name: episode.get(name) for name in _HEAD} != head:
                if episode:
                    yield episode
                episode = {**head, "agents": {}}
            episode["agents"][agent] = data | {"policy": policy, "reward": reward}
        except (KeyError, TypeError) as error:
            raise CorruptCheckpointError(
                f"A row is not as it was written: {error!r}", where=str(file)
            ) from error
    if episode:
        yield episode


def _rows(file: Path) -> Iterator[dict[str, Any]]:
    """Yields the rows of a table, with parsed JSON strings.

    Raises:
        CorruptCheckpointError: The file is not Parquet, or its JSON is damaged.
        BudgetExceededError: It unpacks to far more data than its size.
    """
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(file) as table:
            _require_bounded(table.metadata, file)
            texts = {
                field.name
                for field in table.schema_arrow
                if _JSON.items() <= (field.metadata or {}).items()
            }
            for batch in table.iter_batches():
                for row in batch.to_pylist():
                    for name in texts:
                        row[name] = row[name] and json.loads(row[name])
                    yield row
    except CompatError:
        raise
    # pyarrow raises many kinds of errors for damage: its own, OSError, UnicodeDecodeError, ….
    except Exception as error:
        raise CorruptCheckpointError(f"Not Parquet: {error}", where=str(file)) from error


def _require_bounded(metadata: Any, file: Path) -> None:
    size = file.stat().st_size
    budget = Budget(elements=4_000_000 + 8 * size)
    groups = (metadata.row_group(number) for number in range(metadata.num_row_groups))
    budget.spend("elements", metadata.num_rows * metadata.num_columns, str(file))
    budget.spend("unpacked", sum(group.total_byte_size for group in groups), str(file))


def _nested(row: dict[str, Any]) -> dict[str, Any]:
    data: dict[str, Any] = {"running": {}, "final": {}, "media": {}}
    for column, value in row.items():
        kind, _, name = column.partition("/")
        if kind == "running":
            name, _, part = name.rpartition("/")
            data["running"].setdefault(name, {})[part] = value
        elif kind in _FLAT:
            data.setdefault(kind, {})[name] = value
    return data
