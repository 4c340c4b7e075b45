"""Small functions of `ray.tune.utils`, `.trial` and `.cluster_info` that Tune lacks now."""

from __future__ import annotations

import getpass
import inspect
import json
import os
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
