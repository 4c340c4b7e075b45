"""Tune: what it took over from `ray.train`, and its registry."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def tune_checkpoint_config() -> Any:
    """An empty `CheckpointConfig` for Tune."""
    return _of_tune("CheckpointConfig")()


def tune_report(metrics: dict[str, Any], *, checkpoint: Any = None) -> None:
    """Reports to Tune from a function."""
    _of_tune("report")(metrics, checkpoint=checkpoint)


def tune_context() -> Any:
    """What a function that Tune runs may ask of its trial."""
    return _of_tune("get_context")()


def is_in_trial() -> bool:
    """Whether Tune runs the calling function; outside, contexts have no trial, or say so aloud."""
    try:
        return tune_context().get_trial_id() is not None
    except (AttributeError, RuntimeError):
        return False


def checkpoint_of(folder: str) -> Any:
    """A folder as the checkpoint that `tune_report` takes."""
    return _of_tune("Checkpoint").from_directory(folder)


def _of_tune(name: str) -> Any:
    """What Tune calls by a name; in Ray 2.40 it is that of `ray.train`."""
    from ray import train, tune

    return getattr(tune if hasattr(tune, name) else train, name)


def give_trials_their_old_names() -> None:
    """Lets trials and their checkpoints answer to names that raise today, or are nobody's.

    `trial.logdir` and `trial.init_logdir()` raise since Ray 2.7. A checkpoint was its path until
    Ray 1.13, or had it as `value`; `os.path` and `open` take it for its path again. Results had a
    `log_dir` until Ray 2.6.
    """
    from ray.air.result import Result
    from ray.train import Checkpoint
    from ray.tune.experiment import Trial

    Trial.init_logdir = Trial.init_local_path
    Trial.logdir = property(lambda trial: trial.local_path)
    Result.log_dir = property(lambda result: Path(result.path))
    Checkpoint.value = property(lambda checkpoint: checkpoint.path)
    Checkpoint.__fspath__ = lambda checkpoint: str(checkpoint.path)


def is_registered_env(name: Any) -> bool:
    """Whether `ray.tune.register_env` has had this name."""
    return _is_registered("ENV_CREATOR", name)


def registered_env(name: str) -> Callable[[Any], Any]:
    """The creator that `ray.tune.register_env` was given under a name."""
    from ray.tune import registry

    creator: Callable[[Any], Any] = registry._global_registry.get(registry.ENV_CREATOR, name)
    return creator


def is_registered_trainable(name: Any) -> bool:
    """Whether `ray.tune.register_trainable` has had this name."""
    return _is_registered("TRAINABLE_CLASS", name)


def _is_registered(category: str, name: Any) -> bool:
    # Who registers a name has imported the registry; without it there is nothing to ask.
    registry = sys.modules.get("ray.tune.registry")
    if registry is None or not isinstance(name, str):
        return False
    return bool(registry._global_registry.contains(getattr(registry, category), name))
