"""What Ray and torch start before anybody needs it, and how a conversion does without."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from rllib_compat.ray_versions.sessions import quiet_logs

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
            ray.put = _not_stored
        yield


def _not_stored(value: Any, **_: Any) -> Any:
    """Takes the place of `ray.put`: nobody will ask for the value."""
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
