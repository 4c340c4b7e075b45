"""`result.json`, `progress.csv` and TensorBoard's events, which every Trainer wrote by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rllib_compat.formats.paths import local_path
from rllib_compat.ray_versions import tune


@dataclass(eq=False)  # Tune's loggers keep their open files by trial
class _Trial:
    """The attributes of a trial that Tune's loggers read."""

    config: Mapping[str, Any]
    local_path: str
    evaluated_params: Mapping[str, Any] = field(default_factory=dict)
    checkpoint: None = None  # nothing to continue from

    def init_local_path(self) -> None:
        Path(self.local_path).mkdir(parents=True, exist_ok=True)


class UnifiedLogger:
    """The logger of Ray 0.5 – 2.6 for trainers outside Tune, with the present loggers of Tune.

    Args:
        config: The trainer's config; it becomes `params.json`.
        logdir: The folder to write into.
        loggers: Callbacks of `ray.tune.logger` or loggers of old Rays, instead of JSON, CSV and
            TensorBoard.
        trial: The trial, for loggers of old Rays, or None.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        logdir: str,
        loggers: Sequence[type] | None = None,
        trial: object = None,
    ) -> None:
        from ray.tune.logger import CSVLoggerCallback, JsonLoggerCallback, LoggerCallback

        self.logdir = str(local_path(logdir))
        self._trial = _Trial(dict(config), self.logdir)
        kinds = loggers or (JsonLoggerCallback, CSVLoggerCallback, tune.tensorboard_logger())
        callbacks = [kind for kind in kinds if issubclass(kind, LoggerCallback)]
        self._loggers = [kind() for kind in callbacks]
        self._old = [
            kind(dict(config), self.logdir, trial) for kind in kinds if kind not in callbacks
        ]
        self._started = False

    def on_result(self, result: Mapping[str, Any]) -> None:
        """Writes one result."""
        if not self._started:
            self._trial.init_local_path()
            for logger in self._loggers:
                logger.log_trial_start(self._trial)
            self._started = True
        for logger in self._loggers:
            logger.log_trial_result(result.get("training_iteration", 0), self._trial, dict(result))
        for logger in self._old:
            logger.on_result(result)

    def flush(self) -> None:
        """Flushes loggers of old Rays; all others but TensorBoard's write immediately."""
        for logger in self._old:
            logger.flush()

    def close(self) -> None:
        """Closes the files."""
        for logger in self._loggers if self._started else ():
            logger.log_trial_end(self._trial)
        for logger in self._old:
            logger.close()
        self._started = False
