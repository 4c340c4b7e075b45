"""What `AlgorithmConfig.offline_data(input_=…)` gets for a legacy `input`."""

from __future__ import annotations

import ast
import itertools
import tempfile
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np

from rllib_compat.formats.paths import local_path
from rllib_compat.neutral.deferred import PUBLIC, Deferred, Writer
from rllib_compat.neutral.errors import ConfigError, CorruptCheckpointError
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.public import public
from rllib_compat.runtime.offline.files import ONE_POLICY, find_files, from_json, read_lines

#: Columns that number steps; a recording without them counts nothing.
COUNTERS = ("t", "eps_id", "unroll_id", "agent_index")
_BEFORE = {"prev_actions": "actions", "prev_rewards": "rewards"}

# Converted recordings by their files and the times of their last changes. A folder is deleted when
# the process ends; until then, all configs that read the same files share it.
_FOLDERS: dict[tuple[tuple[str, int], ...], tempfile.TemporaryDirectory[str]] = {}


@public("rllib_compat.adapters")
@frozen
class Readers(Deferred):
    """Recordings for the old API stack, which reads JSON itself, and unpickles what is in it.

    Attributes:
        source: As of `as_parquet`, or a dict of these and `"sampler"` with probabilities.
    """

    source: Any

    def build(self) -> Any:
        """A function of the I/O context that makes the reader, or a dict of such."""
        if isinstance(self.source, Mapping):
            return {_make_readers(source, mixed=True): part for source, part in self.source.items()}
        return _make_readers(self.source)

    def code(self, writer: Writer) -> ast.expr | None:
        """The call that makes them."""
        readers = writer.call(writer.imported(PUBLIC, "Readers"), self.source)
        return readers and writer.call(ast.Attribute(readers, "build", ast.Load()))


@public("rllib_compat.adapters")
def as_parquet(source: str | Path | Sequence[str | Path]) -> str | list[str]:
    """Converts recordings to a folder of Parquet, with an episode a row, as Ray writes them.

    Args:
        source: A directory, a pattern, a path, or a list of paths.

    Returns:
        The folder, which lives as long as the process. Recordings that are not there (yet) stay
        what they were called: the translation warns of them, and Ray names them when it reads.

    Raises:
        ConfigError: There is Parquet, whose cells Ray unpickles.
    """
    try:
        files = find_files(source)
    except ConfigError:
        if isinstance(source, (str, Path)):
            _refuse_parquet([source])
            return str(source)
        _refuse_parquet(source)
        return [str(one) for one in source]
    import msgpack
    import msgpack_numpy
    import pyarrow as pa
    import pyarrow.parquet as pq

    from rllib_compat.runtime.offline.episodes import episodes_of

    key = tuple((str(file), file.stat().st_mtime_ns) for file in files)
    if key not in _FOLDERS:
        folder = tempfile.TemporaryDirectory(prefix="rllib_compat_")
        states = map(_state_of, episodes_of(files))
        items = [msgpack.packb(state, default=msgpack_numpy.encode) for state in states]
        table = pa.table({"item": pa.array(items, pa.binary())})
        pq.write_table(table, Path(folder.name) / "episodes.parquet", row_group_size=64)
        _FOLDERS[key] = folder
    return _FOLDERS[key].name


def _state_of(episode: Any) -> Any:
    """The state of an episode, as Ray writes it.

    Raises:
        CorruptCheckpointError: Its steps are such that Ray has none.
    """
    try:
        return episode.get_state()
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise CorruptCheckpointError(
            f"The recorded steps of an episode don't fit each other: {error}.",
            where=f"episode {episode.id_}",
            fix="Leave out the file, or record it again.",
        ) from error


def converted_from(folder: object) -> Path | None:
    """The first file of the recordings that a folder was made of; None: it is not of ours."""
    for key, kept in _FOLDERS.items():
        if kept.name == folder:
            return Path(key[0][0])
    return None


def _refuse_parquet(sources: Sequence[str | Path]) -> None:
    """Keeps Ray from reading Parquet that a config names as recordings.

    Whatever the types of its columns say: texts may be pickles, and so may be what is in bytes.
    """
    for path in map(local_path, sources):
        found = path.rglob("*.parquet") if path.is_dir() else [path] if path.is_file() else []
        if any(found):
            raise ConfigError(
                "There is Parquet, not recordings in JSON; Ray would run what is pickled in it.",
                where=f"$.input: {path}",
                fix="give the JSON files that `output` wrote; if you trust these, say how the "
                "installed "
                'Ray is to read them: `input_read_method="read_parquet"`',
            )


def _make_readers(source: Any, *, mixed: bool = False) -> Any:
    """The function that opens a source, where Ray's own reader would execute what is in it.

    Args:
        source: The source.
        mixed: Whether batches of other sources, too, go into one buffer.
    """
    if callable(source) or not _is_recording(source):
        return source

    def read(context: Any) -> Any:
        reader = _reader_class()([str(file) for file in find_files(source)], context)
        reader.mixed = mixed
        return reader

    assert isinstance(read, FunctionType)  # Ray takes no other callable
    return read


def _is_recording(source: Any) -> bool:
    from ray.tune.registry import registry_contains_input

    if isinstance(source, (list, tuple)):
        return True
    named = source in ("sampler", "dataset") or source.startswith("d4rl.")
    return not named and "://" not in source and not registry_contains_input(source)


def match_sampled_columns(batch: MutableMapping[str, Any], columns: Mapping[str, Any]) -> None:
    """Gives a recorded batch the columns that a policy's own samples have, in place.

    A replay buffer joins batches of all sources, and dies of one that has other columns: those of
    another algorithm, or of another Ray. Which ones a policy's samples have changes, too: all of
    them until its loss was computed once, then those that the loss read.

    Args:
        batch: The batch.
        columns: What the policy's samples have: its view requirements by their names.
    """
    wanted = {name: view for name, view in columns.items() if view.used_for_training}
    for name in [name for name in batch if name not in wanted]:
        del batch[name]
    number = len(batch["rewards"])
    for name, view in wanted.items():
        if name in batch:
            continue
        if name == "weights":  # what prioritized replay begins with
            batch[name] = np.ones(number, np.float32)
        elif name == "infos":
            batch[name] = np.array([{} for _ in range(number)], dtype=object)
        elif name in COUNTERS:
            batch[name] = np.zeros(number, np.int64)
        elif name in _BEFORE and _BEFORE[name] in batch:
            batch[name] = _shift(batch[_BEFORE[name]], batch.get("t"))
        else:  # an output of a policy that did not take these steps
            batch[name] = np.zeros((number, *view.space.shape), view.space.dtype)


def require_actions_as_they_are(config: Mapping[str, Any], actions: object) -> None:
    """Refuses to normalize recorded actions of several parts, which are one vector each.

    Raises:
        ConfigError: The config asks for it.
    """
    asked = config.get("normalize_actions") and not config.get("actions_in_input_normalized")
    if (
        asked
        and isinstance(actions, (tuple, dict))
        and not config.get("_disable_action_flattening")
    ):
        raise ConfigError(
            "Recorded actions of a Tuple or Dict are one vector each, which no Ray normalizes.",
            where="actions_in_input_normalized",
            fix="Set it to True if they were recorded as numbers from -1 to 1, as by a config with "
            "normalize_actions; else set normalize_actions to False.",
        )


def _policy_of(name: str, policies: Mapping[str, Any], file: str) -> Any:
    """The policy that a recorded batch is of."""
    if name in policies:
        return policies[name]
    raise ConfigError(
        f"The recording has steps of a policy {name!r}; the config's are "
        f"{', '.join(map(repr, policies))}.",
        where=file,
        fix="Call the policy so in multiagent.policies; a recording of one agent alone is of "
        f"{ONE_POLICY!r}.",
    )


def _shift(values: Any, steps: object) -> Any:
    """What was there a step before, and zeros where an episode or the batch begins."""
    before = np.zeros_like(values)
    before[1:] = values[:-1]
    if steps is not None:
        before[np.asarray(steps) == 0] = 0
    return before


def _reader_class() -> Callable[..., Any]:
    from ray.rllib.offline.json_reader import JsonReader, from_json_data

    from rllib_compat.runtime.offline.fit import require_fit

    class Reader(JsonReader):  # type: ignore[misc]  # Ray has no types
        """Ray's reader; packed columns are unpacked without executing anything."""

        mixed = False

        def __init__(self, files: list[str], context: Any) -> None:
            super().__init__(files, context)
            policies = self.ioctx.worker.policy_map if self.ioctx.worker else {}
            for policy in policies.values():
                require_actions_as_they_are(policy.config, policy.action_space_struct)
            if policies:
                for name, columns in itertools.islice(read_lines(Path(files[0])), 1):
                    policy = _policy_of(name, policies, files[0])
                    require_fit(columns, policy.observation_space, policy.action_space, files[0])

        def next(self) -> Any:
            try:
                batch = super().next()
            except ValueError as error:  # it has logged why each of the lines can't be read
                raise CorruptCheckpointError(str(error), where="$.input") from error
            parts = getattr(batch, "policy_batches", {ONE_POLICY: batch}) if self.mixed else {}
            policies = self.ioctx.worker.policy_map if self.ioctx.worker else {}
            for name, part in parts.items():
                policy = policies.get(name)
                if policy is not None:
                    match_sampled_columns(part, policy.view_requirements)
            return batch

        def _from_json(self, data: str) -> Any:
            where = str(getattr(self.cur_file, "name", "input"))
            return from_json_data(from_json(data, where), self.ioctx.worker)

    return Reader
