"""A small or a silent Ray, and what a conversion does without: Ray's cluster, torch's compiler."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

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

    from rllib_compat.ray_versions.worker_start import job_without_working_directory

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
