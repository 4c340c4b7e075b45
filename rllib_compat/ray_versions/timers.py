"""How long an env runner's steps, inference and connectors take, by one set of names."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable
from typing import Any

from rllib_compat.ray_versions.types import EnvRunner, MetricsLogger, RLModule


def log_sampler_times(env_runner: EnvRunner, metrics_logger: MetricsLogger) -> None:
    """Logs how long steps, inference and connectors take, by the names of later releases.

    Ray 2.40 timed single connectors only, and logged nothing.
    """
    if not hasattr(env_runner._env_to_module, "timers") or env_runner.module is None:
        return
    for pipeline, name in (
        (env_runner._env_to_module, "env_to_module_connector"),
        (env_runner._module_to_env, "module_to_env_connector"),
    ):
        mean = sum(timer.mean for timer in pipeline.timers.values())
        metrics_logger.log_value((name, "connector_pipeline_timer"), mean, window=10)
    for owner, methods, name in (
        (env_runner, ("_try_env_step",), "env_step_timer"),
        (env_runner.module, _FORWARD, "rlmodule_inference_timer"),
    ):
        timer = vars(owner).get("_legacy_timer")
        if timer is None:  # the first sample, which was not timed
            owner.__dict__["_legacy_timer"] = _time_methods(owner, methods)
        elif timer.count:
            metrics_logger.log_value(name, timer.mean, window=10)


#: What old workers called the parts of a step → where a runner logs them.
_PARTS = {
    "mean_raw_obs_processing_ms": ("env_to_module_connector", "connector_pipeline_timer"),
    "mean_processing_ms": ("env_to_module_connector", "connector_pipeline_timer"),  # until 0.8
    "mean_inference_ms": ("rlmodule_inference_timer",),
    "mean_action_processing_ms": ("module_to_env_connector", "connector_pipeline_timer"),
    "mean_env_wait_ms": ("env_step_timer",),
    "mean_env_render_ms": ("env_render_timer",),
}


def sampler_times(env_runner: EnvRunner) -> dict[str, float]:
    """How long the parts of a step took in the mean, in milliseconds; 0 if unknown."""
    found = {name: env_runner.metrics.peek(key, default=0.0) for name, key in _PARTS.items()}
    return {name: 1000.0 * float(s) if s == s else 0.0 for name, s in found.items()}


def pass_over_connector_timers(env_runner: EnvRunner) -> None:
    """Lets a runner time its pipelines, and not each of their dozen pieces at each step.

    From Ray 2.44 on, these timers take a tenth of the time that sampling takes; nothing reads them.
    """
    log_time = getattr(env_runner.metrics, "log_time", None)
    if log_time is None:
        return

    def timed(key: Any, *args: Any, **kwargs: Any) -> Any:
        return _UNTIMED if _CONNECTORS in key else log_time(key, *args, **kwargs)

    env_runner.metrics.log_time = timed


_UNTIMED = contextlib.nullcontext()
_CONNECTORS = "connectors"
_FORWARD = ("forward_exploration", "forward_inference")


def without_timers(module: RLModule) -> Any:
    """The module without what `log_sampler_times` has put into it."""
    module = copy.copy(module)
    for name in ("_legacy_timer", *_FORWARD):
        module.__dict__.pop(name, None)
    return module


def _time_methods(owner: object, methods: tuple[str, ...]) -> Any:
    from ray.util.timer import _Timer

    timer = _Timer(window_size=100)

    def timed(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: object, **kwargs: object) -> Any:
            with timer:
                return method(*args, **kwargs)

        return call

    for name in methods:
        owner.__dict__[name] = timed(getattr(owner, name))
    return timer
