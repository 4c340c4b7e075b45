"""Tune's `Trainable`, and the loggers that algorithms brought along until a release after 2.40."""

from __future__ import annotations

import inspect
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig


def without_logger(config: AlgorithmConfig, logdir: str) -> None:
    """Keeps an algorithm from writing its results to files, where its owner does it.

    In Ray 2.40, whatever is trained logs by itself, with loggers that warn that they are old.
    """
    from ray.rllib.algorithms.algorithm import Algorithm

    if "logger_creator" in inspect.signature(Algorithm.__init__).parameters:
        config.debugging(logger_creator=partial(_no_logger, logdir))


def trainable_arguments(given: dict[str, Any]) -> dict[str, Any]:
    """What of the given arguments a `Trainable` takes, and what keeps it from logging by itself."""
    from ray.tune import Trainable

    accepted = inspect.signature(Trainable.__init__).parameters
    if "logger_creator" in accepted and given.get("storage") is None:
        given = {"logger_creator": partial(_no_logger, None), **given}
    return {name: value for name, value in given.items() if name in accepted}


def _no_logger(logdir: str | None, config: Any) -> Any:
    from ray.tune.logger import NoopLogger

    if logdir is None:
        results = Path("~/ray_results").expanduser()
        results.mkdir(parents=True, exist_ok=True)
        now = datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
        import tempfile  # not needed by what only reads

        logdir = tempfile.mkdtemp(prefix=now, dir=results)
    return NoopLogger(config, logdir)


def has_storage(trainable: Any) -> bool:
    """Whether Tune keeps a trainable's results and checkpoints."""
    return trainable._storage is not None


def folder_of(trainable: Any) -> str:
    """Where a trainable's files go, if it has no logger of its own."""
    return str(trainable._logdir)


def trial_storage(trainable: Any) -> tuple[Any, str] | None:
    """Where Tune keeps what belongs to a trainable's trial, on whichever machine it runs.

    Returns:
        pyarrow's file system, None for that of this machine, and the trial's folder in it; None
        without Tune.
    """
    from pyarrow.fs import LocalFileSystem

    storage = getattr(trainable, "_storage", None)
    if storage is None:
        return None
    filesystem = storage.storage_filesystem
    here = isinstance(filesystem, LocalFileSystem)
    return None if here else filesystem, str(storage.trial_fs_path)


def mark_restored(trainable: Any, *, iteration: int) -> None:
    """Makes a trainable count on from a checkpoint, as `Trainable.restore` does."""
    trainable._iteration = iteration
    trainable._time_since_restore, trainable._iterations_since_restore = 0.0, 0
    trainable._timesteps_since_restore = 0


def mark_restored_by_tune(trainable: Any, *, time_total: float) -> None:
    """Says that Tune has restored a trainable, after so many seconds of training."""
    trainable._time_total = time_total
    trainable._restored = True
