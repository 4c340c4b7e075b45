"""Names of `ray` itself, `ray.utils` and `ray.air` that old code imports."""

from __future__ import annotations

import inspect
import logging
import os
import tempfile
from pathlib import Path
from typing import Any

import ray

from rllib_compat.formats.paths import storage_path

__all__ = ["RunConfig", "get_ray_temp_dir", "get_user_temp_dir"]

logger = logging.getLogger(__name__)

DEFAULT_RESULTS_DIR = str(Path("~/ray_results").expanduser())

#: An old argument → its present name.
RENAMED = {
    "redis_address": "address",
    "temp_dir": "_temp_dir",
    "node_ip_address": "_node_ip_address",
}


def init(address: object = None, **arguments: object) -> Any:
    """`ray.init`; arguments that Ray does not have any more are left out, with a warning.

    `local_mode`, for debugging, is one of them: workers are always processes.
    """
    arguments = {RENAMED.get(name, name): value for name, value in arguments.items()}
    address = arguments.pop("address", address)
    known = inspect.signature(ray.init).parameters
    lost = [name for name in arguments if name not in known and not name.startswith("_")]
    for name in [*lost, "local_mode"]:
        if arguments.pop(name, None):
            logger.warning("Ray has no `ray.init(%s=…)` any more: the argument is left out.", name)
    return ray.init(address, **arguments)


def get_user_temp_dir() -> str:
    """The folder for temporary files."""
    return os.environ.get("RAY_TMPDIR") or tempfile.gettempdir()


def get_ray_temp_dir() -> str:
    """Ray's own folder in it."""
    return os.path.join(get_user_temp_dir(), "ray")  # noqa: PTH118 - a text, as it was


def RunConfig(*args: object, local_dir: str | None = None, **kwargs: Any) -> Any:  # noqa: N802
    """`ray.tune.RunConfig`; `local_dir` of Ray 2.0 – 2.6 became `storage_path`."""
    from rllib_compat import tune

    if (place := local_dir or kwargs.get("storage_path")) is not None:
        kwargs["storage_path"] = storage_path(place)
    if (config := kwargs.get("checkpoint_config")) is not None:
        kwargs["checkpoint_config"] = tune.CheckpointConfig(**vars(config))
    return tune.RunConfig(*args, **kwargs)
