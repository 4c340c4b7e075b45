"""Converts a legacy `input` to the argument of `AlgorithmConfig.offline_data(input_=…)`."""

from __future__ import annotations

import ast
import itertools
import tempfile
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from rllib_compat.formats.paths import local_path
from rllib_compat.neutral.deferred import PUBLIC, Deferred, Writer
from rllib_compat.neutral.errors import ConfigError, CorruptCheckpointError
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.public import public
from rllib_compat.runtime.offline.files import ONE_POLICY, find_files, from_json, read_lines
from rllib_compat.runtime.offline.fit import Extremes, require_fit

if TYPE_CHECKING:
    from gymnasium import Space

#: Columns that number steps, episodes and agents; they may be missing in a recording.
COUNTERS = ("t", "eps_id", "unroll_id", "agent_index")
_PREVIOUS = {"prev_actions": "actions", "prev_rewards": "rewards"}

# Files with their modification times → the folder of the converted recording, and what is in it. A
# folder is deleted when the process ends; configs with the same files share it.
_FOLDERS: dict[tuple[tuple[str, int], ...], tuple[tempfile.TemporaryDirectory[str], Extremes]] = {}


@public("rllib_compat.adapters")
@frozen
class Readers(Deferred):
    """Recordings for the old API stack, whose own JSON reader would unpickle columns.

    Attributes:
        source: A source of `as_parquet`, or a dict of these and `"sampler"` with probabilities.
    """

    source: Any

    def build(self) -> Any:
        """Returns a function from an I/O context to the reader, or a dict of such functions."""
        if isinstance(self.source, Mapping):
            return {_make_readers(source, mixed=True): part for source, part in self.source.items()}
        return _make_readers(self.source)

    def code(self, writer: Writer) -> ast.expr | None:
        """Returns the call that creates them."""
        readers = writer.call(writer.imported(PUBLIC, "Readers"), self.source)
        return readers and writer.call(ast.Attribute(readers, "build", ast.Load()))


@public("rllib_compat.adapters")
def as_parquet(source: str | Path | Sequence[str | Path]) -> str | list[str]:
    """Converts recordings to a folder of Parquet with one episode per row, as Ray writes them.

    Args:
        source: A directory, a pattern, a path, or a list of paths.

    Returns:
        The folder, which exists until the process ends. The paths of recordings that do not exist
        (yet) are returned unchanged: the translation warns about them.

    Raises:
        ConfigError: The source is Parquet, whose cells Ray would unpickle.
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
        extremes, items = Extremes(), []
        for episode in episodes_of(files):
            extremes.add(episode)
            items.append(msgpack.packb(_state_of(episode), default=msgpack_numpy.encode))
        table = pa.table({"item": pa.array(items, pa.binary())})
        pq.write_table(table, Path(folder.name) / "episodes.parquet", row_group_size=64)
        _FOLDERS[key] = folder, extremes
    return _FOLDERS[key][0].name


def _state_of(episode: Any) -> Any:
    """Returns the state of an episode, as Ray writes it.

    Raises:
        CorruptCheckpointError: Ray cannot represent its steps.
    """
    try:
        return episode.get_state()
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise CorruptCheckpointError(
            f"The columns of a recorded episode do not match: {error}.",
            where=f"episode {episode.id_}",
            fix="remove the file from `input`, or record it again",
        ) from error


def require_fitting_steps(folder: object, seen: Space[Any], acts: Space[Any]) -> None:
    """Checks that all steps of a converted recording match the spaces of a policy.

    Raises:
        ConfigError: They do not match; see `require_fit`.
    """
    for key, (kept, extremes) in _FOLDERS.items():
        if kept.name == folder:
            files = [file for file, _ in key]
            for columns in extremes:
                require_fit(columns, seen, acts, ", ".join(files[:3]))


def _refuse_parquet(sources: Sequence[str | Path]) -> None:
    """Raises an error if a config names Parquet as a recording.

    Columns of any type, strings or bytes, may hold pickles that Ray would run.
    """
    for path in map(local_path, sources):
        found = path.rglob("*.parquet") if path.is_dir() else [path] if path.is_file() else []
        if any(found):
            raise ConfigError(
                "The input is Parquet, not JSON; Ray would unpickle, and so execute, its contents.",
                where=f"$.input: {path}",
                fix="pass the JSON files of `output`; or, if you trust the files, set "
                '`input_read_method="read_parquet"`',
            )


def _make_readers(source: Any, *, mixed: bool = False) -> Any:
    """Returns a function that opens a recording without executing anything; else the source."""
    if callable(source) or not _is_recording(source):
        return source

    def read(context: Any) -> Any:
        reader = _reader_class()([str(file) for file in find_files(source)], context)
        reader.mixed = mixed
        return reader

    assert isinstance(read, FunctionType)  # Ray rejects any other callable
    return read


def _is_recording(source: Any) -> bool:
    from ray.tune.registry import registry_contains_input

    if isinstance(source, (list, tuple)):
        return True
    named = source in ("sampler", "dataset") or source.startswith("d4rl.")
    return not named and "://" not in source and not registry_contains_input(source)


def match_sampled_columns(batch: MutableMapping[str, Any], columns: Mapping[str, Any]) -> None:
    """Gives a recorded batch the columns of a policy's own samples, in place.

    A replay buffer joins batches of all sources, and raises an error if one has other columns, such
    as those of another algorithm or Ray. The columns of a policy's samples change, too: all of them
    until the loss is first computed, then those that the loss reads.
    """
    wanted = {name: view for name, view in columns.items() if view.used_for_training}
    for name in [name for name in batch if name not in wanted]:
        del batch[name]
    number = len(batch["rewards"])
    for name, view in wanted.items():
        if name in batch:
            continue
        if name == "weights":  # the initial value in prioritized replay
            batch[name] = np.ones(number, np.float32)
        elif name == "infos":
            batch[name] = np.array([{} for _ in range(number)], dtype=object)
        elif name in COUNTERS:
            batch[name] = np.zeros(number, np.int64)
        elif name in _PREVIOUS and _PREVIOUS[name] in batch:
            batch[name] = _shift(batch[_PREVIOUS[name]], batch.get("t"))
        else:  # an output of a policy that did not take these steps
            batch[name] = np.zeros((number, *view.space.shape), view.space.dtype)


def check_action_normalization(config: Mapping[str, Any], actions: object) -> None:
    """Checks that a config does not normalize recorded actions of several parts.

    Raises:
        ConfigError: It does; such actions are recorded as one vector each.
    """
    normalizes = config.get("normalize_actions") and not config.get("actions_in_input_normalized")
    if (
        normalizes
        and isinstance(actions, (tuple, dict))
        and not config.get("_disable_action_flattening")
    ):
        raise ConfigError(
            "Recorded actions of a Tuple or Dict are one vector each, which Ray cannot normalize.",
            where="actions_in_input_normalized",
            fix="set it to True if the recording's config had normalize_actions (numbers from -1 "
            "to 1); otherwise set normalize_actions to False",
        )


def _policy_of(name: str, policies: Mapping[str, Any], file: str) -> Any:
    if name in policies:
        return policies[name]
    raise ConfigError(
        f"The recording has steps of a policy {name!r}; the config's are "
        f"{', '.join(map(repr, policies))}.",
        where=file,
        fix="use the recording's ids in multiagent.policies; a single-agent recording has "
        f"{ONE_POLICY!r}",
    )


def _shift(values: Any, steps: object) -> Any:
    """Shifts values by one step, with zeros at the start of episodes and of the batch."""
    before = np.zeros_like(values)
    before[1:] = values[:-1]
    if steps is not None:
        before[np.asarray(steps) == 0] = 0
    return before


def _parts(batch: Any) -> dict[str, Any]:
    """Returns a batch of steps by policy."""
    return dict(getattr(batch, "policy_batches", {ONE_POLICY: batch}))


def _reader_class() -> Callable[..., Any]:
    from ray.rllib.offline.json_reader import JsonReader, from_json_data

    class Reader(JsonReader):  # type: ignore[misc]  # Ray has no types
        """Ray's reader, which unpacks columns without executing anything."""

        mixed = False

        def __init__(self, files: list[str], context: Any) -> None:
            super().__init__(files, context)
            self._policies = self.ioctx.worker.policy_map if self.ioctx.worker else {}
            for policy in self._policies.values():
                check_action_normalization(policy.config, policy.action_space_struct)
            for name, columns in itertools.islice(read_lines(Path(files[0])), 1):
                self._require_fit(name, columns, files[0])

        def _require_fit(self, name: str, columns: Mapping[str, Any], file: str) -> None:
            if self._policies:
                policy = _policy_of(name, self._policies, file)
                require_fit(columns, policy.observation_space, policy.action_space, file)

        def _try_parse(self, line: str) -> Any:
            batch = super()._try_parse(line)
            for name, columns in {} if batch is None else _parts(batch).items():
                self._require_fit(name, columns, self.cur_file.name)
            return batch

        def next(self) -> Any:
            try:
                batch = super().next()
            except ValueError as error:  # Ray has logged the error of each line
                raise CorruptCheckpointError(
                    str(error),
                    where="$.input",
                    fix="pass files that RLlib has written; the log has the error of each line",
                ) from error
            for name, part in _parts(batch).items() if self.mixed else ():
                policy = self._policies.get(name)
                if policy is not None:
                    match_sampled_columns(part, policy.view_requirements)
            return batch

        def _from_json(self, data: str) -> Any:
            where = str(getattr(self.cur_file, "name", "input"))
            return from_json_data(from_json(data, where), self.ioctx.worker)

    return Reader
