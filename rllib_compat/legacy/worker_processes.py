"""Old imports in Ray's worker processes, which unpickle and import the user's code, too.

Ray reads a job's config from an environment variable where it starts under its own job server, and
merges it with what `ray.init` is given. So the hook reaches the workers whoever calls `ray.init`,
also on the other nodes of a cluster.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any

_JOB_CONFIG = "RAY_JOB_CONFIG_JSON_ENV_VAR"
_PACKAGES = "RLLIB_COMPAT_LEGACY_PACKAGES"
_OLD_RAY = "RLLIB_COMPAT_OLD_RAY"
_HOOK_KEY = "worker_process_setup_hook"
_HOOK = "rllib_compat.legacy.activation.activate_worker"


def activate_there(packages: Iterable[str] = (), old_ray: str | None = None) -> None:
    """Has the workers of a Ray that is started later activate the old imports.

    Where the user has a hook of his own, they do so when they unpickle the first old module.
    """
    config: dict[str, Any] = json.loads(os.environ.get(_JOB_CONFIG, "{}"))
    runtime_env = config.setdefault("runtime_env", {})
    runtime_env.setdefault(_HOOK_KEY, _HOOK)
    told = {_PACKAGES: ",".join(sorted(packages)), _OLD_RAY: old_ray}
    if told := {name: value for name, value in told.items() if value}:
        runtime_env.setdefault("env_vars", {}).update(told)
    os.environ[_JOB_CONFIG] = json.dumps(config)


def forget() -> None:
    """Undoes `activate_there`."""
    config: dict[str, Any] = json.loads(os.environ.get(_JOB_CONFIG, "{}"))
    runtime_env = config.get("runtime_env", {})
    if runtime_env.get(_HOOK_KEY) == _HOOK:
        del runtime_env[_HOOK_KEY]
    told = runtime_env.get("env_vars", {})
    for name in (_PACKAGES, _OLD_RAY):
        told.pop(name, None)
    if not told:
        runtime_env.pop("env_vars", None)
    if any(runtime_env.values()) or len(config) > 1:
        os.environ[_JOB_CONFIG] = json.dumps(config)
    else:
        os.environ.pop(_JOB_CONFIG, None)


def packages_here() -> list[str]:
    """The packages that the driver has called old."""
    return list(filter(None, os.environ.get(_PACKAGES, "").split(",")))


def old_ray_here() -> str | None:
    """The old Ray whose examples the driver runs."""
    return os.environ.get(_OLD_RAY)
