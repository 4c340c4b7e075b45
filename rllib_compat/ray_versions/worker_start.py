"""What the workers of a Ray do first, and where they find modules.

Ray reads a job's config from an environment variable where it starts under its own job server, and
merges it with what `ray.init` is given. So what is said here reaches the workers whoever calls
`ray.init`, also on the other nodes of a cluster.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping
from typing import Any

from rllib_compat.neutral.public import import_attribute

_JOB_CONFIG = "RAY_JOB_CONFIG_JSON_ENV_VAR"
_CALLS = "RLLIB_COMPAT_IN_WORKERS"
_HOOK_KEY = "worker_process_setup_hook"
_HOOK = f"{__name__}.start_worker"


def call_in_workers(function: str, variables: Mapping[str, str]) -> None:
    """Has each worker of a Ray that is started later call a function, unless the user has a hook.

    Args:
        function: `module:name` of the function, which takes nothing.
        variables: Environment variables with its arguments.
    """
    config: dict[str, Any] = json.loads(os.environ.get(_JOB_CONFIG, "{}"))
    runtime_env = config.setdefault("runtime_env", {})
    runtime_env.setdefault(_HOOK_KEY, _HOOK)
    env_vars = runtime_env.setdefault("env_vars", {})
    env_vars.update(variables)
    env_vars[_CALLS] = ",".join(dict.fromkeys([*_functions(env_vars), function]))
    os.environ[_JOB_CONFIG] = json.dumps(config)


def cancel_call_in_workers(function: str, variables: Collection[str]) -> None:
    """Undoes `call_in_workers`."""
    config: dict[str, Any] = json.loads(os.environ.get(_JOB_CONFIG, "{}"))
    runtime_env = config.get("runtime_env", {})
    env_vars = runtime_env.get("env_vars", {})
    left = [other for other in _functions(env_vars) if other != function]
    for name in (*variables, _CALLS):
        env_vars.pop(name, None)
    if left:
        env_vars[_CALLS] = ",".join(left)
    elif runtime_env.get(_HOOK_KEY) == _HOOK:
        del runtime_env[_HOOK_KEY]
    if not env_vars:
        runtime_env.pop("env_vars", None)
    if any(runtime_env.values()) or len(config) > 1:
        os.environ[_JOB_CONFIG] = json.dumps(config)
    else:
        os.environ.pop(_JOB_CONFIG, None)


def start_worker() -> None:
    """What Ray calls in each worker process."""
    for function in _functions(os.environ):
        module, _, name = function.partition(":")
        import_attribute(module, name)()


def _functions(variables: Mapping[str, str]) -> list[str]:
    return [function for function in variables.get(_CALLS, "").split(",") if function]


def job_without_working_directory() -> Any:
    """The config of a job whose workers do not look for modules in the driver's directories.

    Ray puts the driver's working directory in front of all that is installed, unless the job brings
    a directory of its own.
    """
    from ray.job_config import JobConfig

    class Config(JobConfig):  # type: ignore[misc,unused-ignore]  # Ray has no types for it
        def _runtime_env_has_working_dir(self) -> bool:
            return True

    return Config()
