"""Functions as trainables, and how they reported, in Tune of Ray 0.5 – 2.x."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import ray.tune

from rllib_compat import ray_versions


def report(metrics: Any = None, *, checkpoint: Any = None, **by_name: Any) -> None:
    """Reports metrics to Tune.

    Args:
        metrics: The metrics by name, as today; or one number without a name, as before.
        checkpoint: A `ray.tune.Checkpoint`, or None.
        **by_name: The metrics, as until Ray 2.6.
    """
    if metrics is not None and not isinstance(metrics, Mapping):
        metrics = {"_metric": metrics}
    ray_versions.tune_report({**(metrics or {}), **by_name}, checkpoint=checkpoint)


def with_samplers(value: Any) -> Any:
    """A config in which functions of a `spec` are drawn for each trial.

    Tune of Ray 0.5 – 0.7 called functions among the values; later ones want `sample_from` around
    them. RLlib's own take no argument of that name.
    """
    if isinstance(value, Mapping):
        return {key: with_samplers(inner) for key, inner in value.items()}
    if inspect.isfunction(value) and list(inspect.signature(value).parameters) == ["spec"]:
        return ray.tune.sample_from(value)
    return value


def with_reporter(function: Callable[..., Any]) -> Callable[..., Any]:
    """Gives `function(config, reporter)` of Ray 0.5 – 1.x the one argument that Tune calls it with.

    Returns:
        A function of the config; the same one, if it is that already.
    """
    needed = [
        parameter
        for parameter in inspect.signature(function).parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    if len(needed) != 2:
        return function

    def train(config: dict[str, Any]) -> Any:
        return function(config, report)

    train.__name__ = getattr(function, "__name__", "train")  # the experiment's name
    return train
