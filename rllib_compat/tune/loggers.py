"""`ray.tune.logger` of Ray 0.5 – 2.6: loggers of one trial each, and what runs them today."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ray.tune.logger import LoggerCallback

from rllib_compat.trainer.result_files import UnifiedLogger

if TYPE_CHECKING:
    from ray.tune.experiment import Trial

__all__ = [
    "DEFAULT_LOGGERS",
    "CSVLogger",
    "JsonLogger",
    "LegacyLoggerCallback",
    "Logger",
    "NoopLogger",
    "TBXLogger",
    "UnifiedLogger",
]


class Logger:
    """Writes the results of one trial.

    Args:
        config: The trial's config.
        logdir: The folder to write into.
        trial: The trial, or None.
    """

    def __init__(self, config: Mapping[str, Any], logdir: str, trial: Trial | None = None) -> None:
        self.config, self.logdir, self.trial = config, logdir, trial
        self._init()

    def _init(self) -> None:
        """Prepares whatever a subclass needs."""

    def on_result(self, result: Mapping[str, Any]) -> None:
        """Writes one result."""
        raise NotImplementedError

    def update_config(self, config: Mapping[str, Any]) -> None:
        """Takes another config."""

    def close(self) -> None:
        """Frees what is open."""

    def flush(self) -> None:
        """Writes what is still in memory."""


class NoopLogger(Logger):
    """Writes nothing."""

    def on_result(self, result: Mapping[str, Any]) -> None:
        """Does nothing."""


class _OneOfTunes(UnifiedLogger):
    """One of the loggers that Tune has as a callback now."""

    _name = ""

    def __init__(self, config: Mapping[str, Any], logdir: str, trial: Trial | None = None) -> None:
        import ray.tune.logger

        super().__init__(config, logdir, [getattr(ray.tune.logger, self._name)], trial)


class JsonLogger(_OneOfTunes):
    """Writes `result.json` and `params.json`."""

    _name = "JsonLoggerCallback"


class CSVLogger(_OneOfTunes):
    """Writes `progress.csv`."""

    _name = "CSVLoggerCallback"


class TBXLogger(_OneOfTunes):
    """Writes TensorBoard's events."""

    _name = "TBXLoggerCallback"


#: What Tune writes anyway.
DEFAULT_LOGGERS = (JsonLogger, CSVLogger, TBXLogger)


class LegacyLoggerCallback(LoggerCallback):  # type: ignore[misc]  # Ray has no types
    """Runs loggers of one trial each in today's Tune."""

    def __init__(self, logger_classes: Iterable[type] | type) -> None:
        if isinstance(logger_classes, type):
            logger_classes = [logger_classes]
        # Those that Tune runs anyway would write the same files twice.
        self._classes = [c for c in logger_classes if c not in DEFAULT_LOGGERS]
        self._loggers: dict[Any, list[Any]] = {}

    def log_trial_start(self, trial: Trial) -> None:
        """Makes the trial's loggers."""
        trial.init_local_path()
        if trial not in self._loggers:
            made = [c(trial.config, trial.local_path, trial) for c in self._classes]
            self._loggers[trial] = made

    def log_trial_result(self, iteration: int, trial: Trial, result: Mapping[str, Any]) -> None:
        """Passes a result on."""
        del iteration
        for logger in self._loggers.get(trial, ()):
            logger.on_result(result)

    def log_trial_save(self, trial: Trial) -> None:
        """Has them write what is in memory."""
        for logger in self._loggers.get(trial, ()):
            logger.flush()

    def log_trial_end(self, trial: Trial, failed: bool = False) -> None:
        """Closes them."""
        del failed
        for logger in self._loggers.pop(trial, ()):
            logger.close()
