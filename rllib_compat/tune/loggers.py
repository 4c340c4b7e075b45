"""`ray.tune.logger` of Ray 0.5 – 2.6: one logger per trial, and the callback that runs them."""

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
    """A logger for the results of one trial.

    Args:
        config: The trial's config.
        logdir: The folder to write into.
        trial: The trial, or None.
    """

    def __init__(self, config: Mapping[str, Any], logdir: str, trial: Trial | None = None) -> None:
        self.config, self.logdir, self.trial = config, logdir, trial
        self._init()

    def _init(self) -> None:
        """Initializes a subclass."""

    def on_result(self, result: Mapping[str, Any]) -> None:
        """Writes one result."""
        raise NotImplementedError

    def update_config(self, config: Mapping[str, Any]) -> None:
        """Handles a changed config."""

    def close(self) -> None:
        """Closes open files."""

    def flush(self) -> None:
        """Writes buffered results."""


class NoopLogger(Logger):
    """A logger that writes nothing."""

    def on_result(self, result: Mapping[str, Any]) -> None:
        """Does nothing."""


class _TuneLogger(UnifiedLogger):
    """A logger that the installed Tune has as a callback."""

    _name = ""

    def __init__(self, config: Mapping[str, Any], logdir: str, trial: Trial | None = None) -> None:
        import ray.tune.logger

        super().__init__(config, logdir, [getattr(ray.tune.logger, self._name)], trial)


class JsonLogger(_TuneLogger):
    """The logger of `result.json` and `params.json`."""

    _name = "JsonLoggerCallback"


class CSVLogger(_TuneLogger):
    """The logger of `progress.csv`."""

    _name = "CSVLoggerCallback"


class TBXLogger(_TuneLogger):
    """The logger of TensorBoard's events."""

    _name = "TBXLoggerCallback"


#: The loggers that Tune always has.
DEFAULT_LOGGERS = (JsonLogger, CSVLogger, TBXLogger)


class LegacyLoggerCallback(LoggerCallback):  # type: ignore[misc]  # Ray has no types
    """A callback that runs the loggers of each trial."""

    def __init__(self, logger_classes: Iterable[type] | type) -> None:
        if isinstance(logger_classes, type):
            logger_classes = [logger_classes]
        # Tune's default loggers would write the same files twice.
        self._classes = [c for c in logger_classes if c not in DEFAULT_LOGGERS]
        self._loggers: dict[Any, list[Any]] = {}

    def log_trial_start(self, trial: Trial) -> None:
        """Creates the trial's loggers."""
        trial.init_local_path()
        if trial not in self._loggers:
            made = [c(trial.config, trial.local_path, trial) for c in self._classes]
            self._loggers[trial] = made

    def log_trial_result(self, iteration: int, trial: Trial, result: Mapping[str, Any]) -> None:
        """Passes a result to the trial's loggers."""
        del iteration
        for logger in self._loggers.get(trial, ()):
            logger.on_result(result)

    def log_trial_save(self, trial: Trial) -> None:
        """Flushes the trial's loggers."""
        for logger in self._loggers.get(trial, ()):
            logger.flush()

    def log_trial_end(self, trial: Trial, failed: bool = False) -> None:
        """Closes the trial's loggers."""
        del failed
        for logger in self._loggers.pop(trial, ()):
            logger.close()
