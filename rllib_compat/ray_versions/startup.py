"""A small or a silent Ray, and what a conversion does without: Ray's cluster, torch's compiler.

And what the workers of a Ray do first: Ray reads a job's config from an environment variable where
it starts under its own job server, and merges it with what `ray.init` is given. So what is said
here reaches the workers whoever calls `ray.init`, also on the other nodes of a cluster.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import warnings
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from rllib_compat.neutral.public import import_attribute

#: Methods of torch's optimizers that import its compiler when they are first called (torch 2.x,
#: `torch/_compile.py`), only to mark themselves as not compiled.
_MARKED = ("add_param_group", "load_state_dict", "state_dict", "zero_grad")


@contextmanager
def without_cluster() -> Iterator[None]:
    """Lets an algorithm without remote parts be built and saved while no Ray is running.

    `EnvRunnerGroup` puts the config (a release after 2.40) and the weights (all releases) into the
    object store for remote env runners, also where there are none, and the first `ray.put` starts
    Ray. In the block it stores nothing. Where Ray is running already, nothing is changed.
    """
    import ray

    with ExitStack() as stack:
        stack.enter_context(quiet_logs())
        stack.enter_context(_without_compiler())
        if not ray.is_initialized():
            stack.callback(setattr, ray, "put", ray.put)
            ray.put = _put_nothing
        yield


def _put_nothing(value: object, **_: object) -> Any:
    """Takes the place of `ray.put`: the value will not be read."""
    return value


@contextmanager
def _without_compiler() -> Iterator[None]:
    """Keeps torch's compiler from being imported, which takes longer than a whole conversion."""
    from torch.optim import Optimizer

    marked = []
    if "torch._dynamo" not in sys.modules:
        methods = (getattr(vars(Optimizer).get(name), "__wrapped__", None) for name in _MARKED)
        marked = [m for m in methods if m is not None and not hasattr(m, "__dynamo_disable")]
    for method in marked:
        setattr(method, "__dynamo_disable", method)
    try:
        yield
    finally:
        for method in marked:
            delattr(method, "__dynamo_disable")


@contextmanager
def quiet_ray(*, num_cpus: int, job_config: object = None) -> Iterator[None]:
    """A small local Ray for as long as the block runs, unless one is running; errors only."""
    import ray

    started = not ray.is_initialized()
    try:
        with quiet_logs():
            if started:
                ray.init(
                    num_cpus=num_cpus,
                    include_dashboard=False,
                    configure_logging=False,
                    log_to_driver=False,
                    object_store_memory=128 * 1024 * 1024,
                    job_config=job_config,
                )
            yield
    finally:
        if started:
            ray.shutdown()


@contextmanager
def cluster(address: str) -> Iterator[None]:
    """A connection to a cluster while the block runs; its workers import what is installed.

    Args:
        address: As `ray.init` takes it: `auto`, `local`, `host:port`, `ray://…`.
    """
    import ray

    with quiet_logs():
        ray.init(address, configure_logging=False, job_config=job_without_working_directory())
        try:
            yield
        finally:
            ray.shutdown()


@contextmanager
def quiet_logs() -> Iterator[None]:
    """Of what Ray says in the block, errors only: the rest is about its own old parts.

    The handlers filter, as algorithms set the levels of Ray's loggers when they are built.
    """
    import ray.rllib  # noqa: F401  its import adds handlers, so it comes before ours

    loggers = (None, "ray", "ray.rllib", "ray.tune")
    handlers = {handler for name in loggers for handler in logging.getLogger(name).handlers}
    try:
        for handler in handlers:
            handler.addFilter(_is_worth_saying)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for handler in handlers:
            handler.removeFilter(_is_worth_saying)


def _is_worth_saying(record: logging.LogRecord) -> bool:
    """Whether a record is an error, or not Ray's."""
    return record.levelno >= logging.ERROR or record.name.partition(".")[0] != "ray"


def count_gpus() -> float:
    """How many GPUs this process sees, or the cluster has, whichever are more."""
    import ray
    import torch

    if lacks_promised_gpus():
        return 0.0
    return max(float(torch.cuda.device_count()), float(ray.cluster_resources().get("GPU", 0)))


def is_running() -> bool:
    """Whether this process has a Ray."""
    import ray

    return bool(ray.is_initialized())


def may_grow() -> bool:
    """Whether nodes may join the running Ray.

    None joins one that this process has started for itself without an autoscaler. Of others that is
    unknown: somebody may start a node by hand.
    """
    from ray._private import worker

    node = worker._global_node
    return node is None or not node.is_head() or bool(node._ray_params.autoscaling_config)


def lacks_promised_gpus() -> bool:
    """Whether Ray was started with GPUs, and torch finds none on the only node."""
    import ray
    import torch

    promised = ray.cluster_resources().get("GPU", 0) if ray.is_initialized() else 0
    return bool(promised) and len(ray.nodes()) == 1 and not torch.cuda.device_count()


_JOB_CONFIG = "RAY_JOB_CONFIG_JSON_ENV_VAR"
_CALLS = "RLLIB_COMPAT_IN_WORKERS"
_HOOK_KEY = "worker_process_setup_hook"
_HOOK = f"{__name__}.start_worker"


def call_in_workers(function: str, variables: Mapping[str, str]) -> None:
    """Has each worker of a Ray that is started later call `module:name`, which takes nothing.

    A hook of the user's stays. The environment variables are the function's arguments.
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
