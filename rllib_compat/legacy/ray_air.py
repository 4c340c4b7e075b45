"""`ray.air` of Ray 2.0 – 2.6, whose `RunConfig` is Tune's."""

from __future__ import annotations

import copy
from typing import Any

from rllib_compat import tune

__all__ = ["RunConfig"]


def RunConfig(*args: Any, local_dir: str | None = None, **kwargs: Any) -> Any:  # noqa: N802
    """`ray.tune.RunConfig`, with the argument that became `storage_path`."""
    if local_dir is not None:
        kwargs["storage_path"] = tune.storage_path(local_dir)
    config = kwargs.get("checkpoint_config")
    if config is not None:
        kwargs["checkpoint_config"] = tune.CheckpointConfig(**copy.copy(vars(config)))
    return tune.RunConfig(*args, **kwargs)
