"""Tune's searchers with the arguments of Ray 0.5 – 0.8.

They take `max_concurrent`, and `reward_attr`, the metric to maximize; with a space, the mean return
is maximized by default.
"""

from __future__ import annotations

import importlib
import inspect
from functools import cache
from typing import Any

from ray.tune.search import ConcurrencyLimiter

_MODULES = {
    "AxSearch": "ax",
    "BayesOptSearch": "bayesopt",
    "HyperOptSearch": "hyperopt",
    "NevergradSearch": "nevergrad",
    "TuneBOHB": "bohb",
    "ZOOptSearch": "zoopt",
}


def with_legacy_arguments(searcher: Any) -> Any:
    """Derives a searcher class that takes the legacy arguments, and `use_early_stopped_trials`."""
    signature = inspect.signature(searcher.__init__)

    def new(cls: Any, *args: object, max_concurrent: int | None = None, **kwargs: object) -> Any:
        if max_concurrent is None:
            return searcher.__new__(cls)
        return ConcurrencyLimiter(cls(*args, **kwargs), max_concurrent)

    def init(
        self: Any,
        *args: object,
        max_concurrent: None = None,  # noqa: ARG001 - `new` has taken it
        use_early_stopped_trials: bool = True,  # noqa: ARG001 - they always are
        reward_attr: str | None = None,
        **kwargs: object,
    ) -> None:
        given = signature.bind_partial(self, *args, **kwargs).arguments
        if reward_attr is not None:
            kwargs.update(metric=reward_attr, mode="max")
        elif "space" in given and "metric" not in given:
            kwargs.update(metric="episode_reward_mean", mode=kwargs.get("mode", "max"))
        searcher.__init__(self, *args, **kwargs)

    members = {"__new__": new, "__init__": init, "__module__": __name__}
    return type(searcher.__name__, (searcher,), members)


@cache
def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"ray.tune.search.{_MODULES[name]}")
    return with_legacy_arguments(getattr(module, name))
