"""`ray.init` with the arguments of old Rays."""

from __future__ import annotations

import inspect
import logging
from pathlib import Path
from typing import Any

import ray

logger = logging.getLogger(__name__)

DEFAULT_RESULTS_DIR = str(Path("~/ray_results").expanduser())

#: An argument of old → today's name of it.
RENAMED = {
    "redis_address": "address",
    "temp_dir": "_temp_dir",
    "node_ip_address": "_node_ip_address",
}


def init(address: Any = None, **arguments: Any) -> Any:
    """`ray.init`; arguments that mean nothing any more are left out, with a warning.

    `local_mode` was for debugging, and is gone: workers are processes, always.
    """
    arguments = {RENAMED.get(name, name): value for name, value in arguments.items()}
    address = arguments.pop("address", address)
    known = inspect.signature(ray.init).parameters
    lost = [name for name in arguments if name not in known and not name.startswith("_")]
    for name in [*lost, "local_mode"]:
        if arguments.pop(name, None):
            logger.warning("`ray.init(%s=…)` means nothing to Ray any more, and is left out.", name)
    return ray.init(address, **arguments)
