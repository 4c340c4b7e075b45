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
_HOOK_KEY = "worker_process_setup_hook"
_HOOK = "rllib_compat.legacy.activation.activate_worker"


def activate_there(packages: Iterable[str] = ()) -> None:
    """Has the workers of a Ray that is started later activate the old imports."""
    config: dict[str, Any] = json.loads(os.environ.get(_JOB_CONFIG, "{}"))
    runtime_env = config.setdefault("runtime_env", {})
    if runtime_env.setdefault(_HOOK_KEY, _HOOK) != _HOOK:
        return  # the user's own hook; workers are activated when they unpickle the first old module
    if names := ",".join(sorted(packages)):
        runtime_env.setdefault("env_vars", {})[_PACKAGES] = names
    os.environ[_JOB_CONFIG] = json.dumps(config)


def forget() -> None:
    """Undoes `activate_there`."""
    config: dict[str, Any] = json.loads(os.environ.get(_JOB_CONFIG, "{}"))
    runtime_env = config.get("runtime_env", {})
    if runtime_env.get(_HOOK_KEY) == _HOOK:
        del runtime_env[_HOOK_KEY]
        runtime_env.get("env_vars", {}).pop(_PACKAGES, None)
        if any(runtime_env.values()) or len(config) > 1:
            os.environ[_JOB_CONFIG] = json.dumps(config)
        else:
            del os.environ[_JOB_CONFIG]


def packages_here() -> list[str]:
    """The packages that the driver has called old."""
    return list(filter(None, os.environ.get(_PACKAGES, "").split(",")))
