"""Small functions of `ray.tune.utils`, `.trial` and `.cluster_info` that Tune lacks now.

And how Tune of Ray 0.7 – 2.3 kept checkpoints in a trial's folder: `TrainableUtil`, `QueueItem`.
"""

from __future__ import annotations

import getpass
import inspect
import json
import os
import pickle
import shutil
import uuid
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import ray
from ray.tune import error
from ray.tune.schedulers.resource_changing_scheduler import DistributeResources
from ray.tune.utils import flatten_dict
from ray.util.placement_group import placement_group

from rllib_compat.formats import pickles
from rllib_compat.formats.paths import local_path
from rllib_compat.legacy.ray_api import get_user_temp_dir
from rllib_compat.tune.loggers import NoopLogger

__all__ = [
    "LEGACY_RNG",
    "MOCK_REMOTE_DIR",
    "PINNED_OBJECT_PREFIX",
    "PlacementGroupUtil",
    "TuneGetNextExecutorEventError",
    "create_logdir",
    "delete_on_node",
    "detect_checkpoint_function",
    "detect_reporter",
    "evenly_distribute_cpus_gpus",
    "evenly_distribute_cpus_gpus_distributed",
    "generate_plotly_dim_dict",
    "get_pinned_object",
    "get_ssh_key",
    "get_ssh_user",
    "get_tune_pg_prefix",
    "is_ray_cluster",
    "load_results_to_df",
    "memory_debug_str",
    "noop_logger_creator",
    "np_random_generator",
    "pin_in_object_store",
]

PINNED_OBJECT_PREFIX = "ray.tune.PinnedObject:"
LEGACY_RNG = False
np_random_generator = np.random.Generator
_pinned: list[Any] = []

#: The folder that tests used as a cloud.
MOCK_REMOTE_DIR = os.path.join(get_user_temp_dir(), "mock-tune-remote", "")  # noqa: PTH118

#: How `ResourceChangingScheduler` divides resources (Ray 1.9 – 1.12).
evenly_distribute_cpus_gpus = DistributeResources()
evenly_distribute_cpus_gpus_distributed = DistributeResources(add_bundles=True)


def _takes(function: Callable[..., Any], partial: bool = False, **by_name: object) -> bool:
    signature = inspect.signature(function)
    try:
        (signature.bind_partial if partial else signature.bind)({}, **by_name)
    except TypeError:
        return False
    return True


def detect_checkpoint_function(
    train_func: Callable[..., Any], abort: bool = False, partial: bool = False
) -> bool:
    """Whether a function takes (config, checkpoint_dir).

    Args:
        train_func: The function.
        abort: Whether to raise an error if it doesn't.
        partial: Whether it may need more arguments.

    Raises:
        ValueError: It doesn't.
    """
    found = _takes(train_func, partial, checkpoint_dir="")
    if abort and not found:
        signature = inspect.signature(train_func)
        raise ValueError(
            f"A function of (config, checkpoint_dir=None) is needed, not of {signature}."
        )
    return found


def detect_reporter(func: Callable[..., Any]) -> bool:
    """Whether a function takes (config, reporter)."""
    return _takes(func, reporter=None)


def create_logdir(dirname: str, local_dir: str) -> str:
    """Makes a folder; if there is one of that name, with four random digits behind it."""
    path = local_path(local_dir) / dirname
    if path.exists():
        path = path.with_name(f"{path.name}_{uuid.uuid4().hex[:4]}")
    path.mkdir(parents=True, exist_ok=True)
    return str(path)


def pin_in_object_store(obj: object) -> Any:
    """Puts an object into Ray's store, where it stays."""
    _pinned.append(ray.put(obj))
    return _pinned[-1]


def get_pinned_object(pinned_id: object) -> Any:
    """An object of `pin_in_object_store`."""
    return ray.get(pinned_id)


def load_results_to_df(directory: str, result_name: str = "result.json") -> Any:
    """The last results of all trials below a folder with their configs, a row each.

    Args:
        directory: The folder.
        result_name: The file that has a result in each line.
    """
    import pandas as pd  # type: ignore[import-untyped]

    rows = []
    for file in sorted(local_path(directory).rglob(result_name)):
        config = json.loads(file.with_name("params.json").read_text("utf-8"))
        results = filter(str.strip, reversed(file.read_text("utf-8").split("\n")))
        last: dict[str, Any] = json.loads(next(results, "{}"))
        rows.append({**flatten_dict(config), **flatten_dict(last)})
    return pd.DataFrame(rows)


def generate_plotly_dim_dict(df: Any, field: str) -> dict[str, Any]:
    """A column as a dimension of plotly's parallel coordinates: numbers, or texts by number.

    Raises:
        ValueError: They are neither.
    """
    from pandas.api import types  # type: ignore[import-untyped]

    column = df[field]
    if types.is_numeric_dtype(column):
        return {"label": field, "values": column}
    if not types.is_string_dtype(column):
        raise ValueError(f"The column {field!r} has neither numbers nor texts.")
    texts = column.unique().tolist()
    numbers = [texts.index(text) for text in column]
    return {
        "label": field,
        "values": numbers,
        "tickvals": list(range(len(texts))),
        "ticktext": texts,
    }


class TuneGetNextExecutorEventError(error.TuneError):  # type: ignore[misc]  # Ray has no types
    """Waiting for the next event of trials has failed."""

    def __init__(self, traceback_str: str) -> None:
        super().__init__(traceback_str)
        self.traceback_str = traceback_str


class PlacementGroupUtil:
    """Resources of a trial's own workers."""

    @staticmethod
    def get_remote_worker_options(
        num_workers: int,
        num_cpus_per_worker: int,
        num_gpus_per_worker: int,
        num_workers_per_host: int | None,
        timeout_s: float | None,
    ) -> tuple[dict[str, Any], Any]:
        """Options of actors, and the placement group that they are in, or None.

        Args:
            num_workers: How many workers there are.
            num_cpus_per_worker: The CPUs of each.
            num_gpus_per_worker: The GPUs of each.
            num_workers_per_host: How many share a node; None: they are anywhere.
            timeout_s: How long to wait for nodes.
        """
        options: dict[str, Any] = {"num_cpus": num_cpus_per_worker, "num_gpus": num_gpus_per_worker}
        if not num_workers_per_host:
            return options, None
        bundle = {"CPU": num_cpus_per_worker, "GPU": num_gpus_per_worker}
        bundle = {kind: count * num_workers_per_host for kind, count in bundle.items()}
        nodes = [bundle] * (num_workers // num_workers_per_host)
        group = placement_group(nodes, strategy="STRICT_SPREAD")
        ray.get(group.ready(), timeout=timeout_s)
        return {**options, "placement_group": group}, group


def delete_on_node(node_ip: str, path: str, return_future: bool = False) -> Any:
    """Removes a file or folder on a node.

    Returns:
        Whether there was something, or the reference of that.
    """
    task = ray.remote(num_cpus=0, resources={f"node:{node_ip}": 0.01})(_delete)
    reference = task.remote(path)
    return reference if return_future else ray.get(reference)


def _delete(path: str) -> bool:
    target = Path(path)
    there = target.exists()
    if target.is_dir():
        shutil.rmtree(target)
    else:
        target.unlink(missing_ok=True)
    return there


def memory_debug_str() -> str:
    """How much of the node's memory is used, if psutil is installed."""
    try:
        import psutil  # type: ignore[import-untyped]
    except ImportError:
        return "Unknown memory usage: install psutil."
    memory = psutil.virtual_memory()
    used, total = (size / 2**30 for size in (memory.total - memory.available, memory.total))
    low = ": less than a tenth is free" if used > 0.9 * total else ""
    return f"Memory usage on this node: {used:.1f}/{total:.1f} GiB{low}"


def noop_logger_creator(config: dict[str, Any], logdir: str) -> Any:
    """Makes the trial's folder, works in it, and gives a logger that writes nothing."""
    Path(logdir).mkdir(parents=True, exist_ok=True)
    os.chdir(logdir)
    return NoopLogger(config, logdir)


@cache
def get_tune_pg_prefix() -> str:
    """The first part of the names of this process's placement groups."""
    return os.environ.get("TUNE_PLACEMENT_GROUP_PREFIX") or f"__tune_{uuid.uuid4().hex[:8]}__"


def is_ray_cluster() -> bool:
    """Whether Ray's cluster launcher set this machine up: it leaves a file in the home folder."""
    return Path("~/ray_bootstrap_config.yaml").expanduser().exists()


def get_ssh_user() -> str:
    """The user as which nodes of the cluster reach each other."""
    return getpass.getuser()


def get_ssh_key() -> str | None:
    """The file of the cluster's SSH key, or None: `TUNE_CLUSTER_SSH_KEY`, or the launcher's own."""
    by_launcher = Path("~/ray_bootstrap_key.pem").expanduser()
    file = os.environ.get("TUNE_CLUSTER_SSH_KEY", str(by_launcher))
    return file if Path(file).exists() else None


_MARKER, _METADATA = ".is_checkpoint", ".tune_metadata"
_NULL_MARKER, _TEMP_MARKER = ".null_marker", ".temp_marker"


class QueueItem:
    """A value in a queue that is ordered by priority."""

    def __init__(self, priority: Any, value: Any) -> None:
        self.priority, self.value = priority, value

    def __lt__(self, other: QueueItem) -> bool:
        return bool(self.priority < other.priority)

    def __repr__(self) -> str:
        return f"QueueItem({self.value!r})"


def _read(file: Path) -> dict[str, Any]:
    """A pickle as data: nothing in it is imported or called."""
    found: dict[str, Any] = pickles.load(file).value
    return found


class TrainableUtil:
    """Functions of the files of a checkpoint."""

    @staticmethod
    def find_checkpoint_dir(checkpoint_path: str) -> str:
        """The folder of a checkpoint that a path is in: the next above that has the marker.

        Raises:
            FileNotFoundError: There is no such path, or none of the folders has it.
        """
        path = Path(checkpoint_path)
        if not path.exists():
            raise FileNotFoundError("Path does not exist", checkpoint_path)
        above = [path, *path.parents] if path.is_dir() else path.parents
        found = next((str(folder) for folder in above if (folder / _MARKER).exists()), None)
        if found is None:
            raise FileNotFoundError(f"None of the folders above has {_MARKER}: {checkpoint_path}")
        return found

    @staticmethod
    def find_rel_checkpoint_dir(logdir: str, checkpoint_path: str) -> str:
        """The name of a checkpoint's folder in that of its trial, with a slash behind it."""
        assert checkpoint_path.startswith(logdir), "the checkpoint is not in the trial's folder"
        return os.path.join(Path(os.path.relpath(checkpoint_path, logdir)).parts[0], "")  # noqa: PTH118

    @staticmethod
    def make_checkpoint_dir(
        checkpoint_dir: str, index: int | str | None = None, override: bool = False
    ) -> str:
        """Makes a folder `checkpoint_…` below a trial's, and marks it; a number has six digits.

        With `override`, a folder of that name is removed before.
        """
        number = f"{index:06d}" if isinstance(index, int) else index
        made = Path(checkpoint_dir, "checkpoint" if index is None else f"checkpoint_{number}")
        if override:
            shutil.rmtree(made, ignore_errors=True)
        made.mkdir(parents=True, exist_ok=True)
        (made / _MARKER).touch()
        return str(made)

    @staticmethod
    def process_checkpoint(
        checkpoint: dict[str, Any] | str, parent_dir: str, trainable_state: dict[str, Any]
    ) -> str:
        """Completes a checkpoint: writes its trainable's state, and a dict as a file.

        Args:
            checkpoint: The path that `save_checkpoint` has returned, or a dict.
            parent_dir: The checkpoint's folder.
            trainable_state: The counters of the trainable.

        Returns:
            The checkpoint's path; a folder's has a slash behind it.

        Raises:
            ValueError: It is neither, or lies in another folder.
        """
        if isinstance(checkpoint, dict):
            path = os.path.join(parent_dir, "checkpoint")  # noqa: PTH118 - a text, as it was
            Path(path).write_bytes(pickle.dumps(checkpoint))
        elif not isinstance(checkpoint, str):
            raise ValueError(f"A path or a dict is needed, not {type(checkpoint).__name__}.")
        elif not checkpoint.startswith(parent_dir):
            raise ValueError(f"{checkpoint} is not in {parent_dir}.")
        else:
            path = os.path.join(checkpoint, "") if Path(checkpoint).is_dir() else checkpoint  # noqa: PTH118
        trainable_state["saved_as_dict"] = isinstance(checkpoint, dict)
        Path(f"{path}{_METADATA}").write_bytes(pickle.dumps(trainable_state))
        return path

    @staticmethod
    def load_checkpoint_metadata(checkpoint_path: str) -> dict[str, Any] | None:
        """The state that `process_checkpoint` has written into a checkpoint's folder, or None."""
        file = Path(checkpoint_path, _METADATA)
        if not file.exists():
            folder = Path(TrainableUtil.find_checkpoint_dir(checkpoint_path))
            file = next(iter(sorted(folder.rglob(_METADATA))), file)
        return _read(file) if file.exists() else None

    @staticmethod
    def pickle_checkpoint(checkpoint_path: str) -> bytes:
        """All files of a checkpoint as one pickle."""
        folder = Path(TrainableUtil.find_checkpoint_dir(checkpoint_path))
        files = [file for file in folder.rglob("*") if file.is_file()]
        data = {str(file.relative_to(folder)): file.read_bytes() for file in files}
        name = os.path.relpath(checkpoint_path, folder)
        name += os.path.sep if Path(checkpoint_path).is_dir() else ""
        return pickle.dumps({"checkpoint_name": name, "data": data})

    checkpoint_to_object = pickle_checkpoint

    @staticmethod
    def create_from_pickle(obj: bytes, tmpdir: str) -> str:
        """Writes the files of such a pickle, which is read as data, and gives the path.

        Raises:
            ValueError: A file would lie outside of the folder.
        """
        packed, home = pickles.load(obj).value, Path(tmpdir).resolve()
        for name, content in packed["data"].items():
            file = (home / name).resolve()
            if not file.is_relative_to(home):
                raise ValueError(f"{name!r} is not in {tmpdir}.")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        return os.path.join(tmpdir, packed["checkpoint_name"])  # noqa: PTH118 - with its slash

    @staticmethod
    def get_checkpoints_paths(logdir: str) -> Any:
        """The checkpoints of a trial as a data frame: iterations and paths.

        Raises:
            ValueError: A checkpoint has no state of its trainable, or several.
        """
        import pandas as pd

        rows = []
        for marker in Path(logdir).glob(f"checkpoint_*/{_MARKER}"):
            if marker.parent.name.startswith("checkpoint_tmp"):
                continue
            files = list(marker.parent.glob(f"*{_METADATA}"))
            if len(files) != 1:
                raise ValueError(f"{marker.parent} has {len(files)} files {_METADATA}, not one.")
            iteration = _read(files[0]).get("iteration", -1)
            rows.append([iteration, str(files[0]).removesuffix(_METADATA)])
        return pd.DataFrame(rows, columns=["training_iteration", "chkpt_path"])


class FuncCheckpointUtil:
    """Marks of the checkpoints of functions: empty ones, and those that only restore."""

    @staticmethod
    def _make(logdir: str, index: int | str, marker: str) -> str:
        made = TrainableUtil.make_checkpoint_dir(logdir, index, override=True)
        Path(made, marker).touch()
        return made

    @staticmethod
    def mk_null_checkpoint_dir(logdir: str) -> str:
        """Makes the folder of a checkpoint that holds nothing."""
        return FuncCheckpointUtil._make(logdir, -1, _NULL_MARKER)

    @staticmethod
    def mk_temp_checkpoint_dir(logdir: str) -> str:
        """Makes the folder of a checkpoint that is there until its trial ends."""
        return FuncCheckpointUtil._make(logdir, f"tmp{uuid.uuid4().hex[:6]}", _TEMP_MARKER)

    @staticmethod
    def is_null_checkpoint(checkpoint_dir: str) -> bool:
        """Whether a checkpoint holds nothing."""
        return Path(checkpoint_dir, _NULL_MARKER).exists()

    @staticmethod
    def is_temp_checkpoint_dir(checkpoint_dir: str) -> bool:
        """Whether a checkpoint is there until its trial ends."""
        return Path(checkpoint_dir, _TEMP_MARKER).exists()

    @staticmethod
    def create_perm_checkpoint(checkpoint_dir: str, logdir: str, step: int) -> str:
        """Copies a temporary checkpoint to a permanent folder, and returns that."""
        marker = Path(checkpoint_dir, _TEMP_MARKER)
        assert marker.exists(), "the checkpoint is already permanent"
        marker.unlink()
        made = TrainableUtil.make_checkpoint_dir(logdir, step, override=True)
        shutil.copytree(checkpoint_dir, made, dirs_exist_ok=True)
        return made
