"""Function trainables of Ray 0.5 – 2.x, and how they report."""

from __future__ import annotations

import functools
import inspect
import logging
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ray.tune

from rllib_compat.formats import pickles
from rllib_compat.ray_versions import tune

__all__ = [
    "StatusReporter",
    "checkpoint_dir",
    "get_session",
    "get_trial_dir",
    "get_trial_id",
    "get_trial_name",
    "get_trial_resources",
    "init",
    "is_session_enabled",
    "report",
    "shutdown",
]

logger = logging.getLogger(__name__)

# The folders of `checkpoint_dir` that were not reported yet.
_filled: list[str] = []


def get_trial_dir() -> str:
    """Returns the folder of the current trial."""
    return str(tune.tune_context().get_trial_dir())


def get_trial_id() -> str:
    """Returns the id of the current trial."""
    return str(tune.tune_context().get_trial_id())


def get_trial_name() -> str:
    """Returns the name of the current trial."""
    return str(tune.tune_context().get_trial_name())


def get_trial_resources() -> Any:
    """Returns the resources of the current trial."""
    return tune.tune_context().get_trial_resources()


def is_session_enabled() -> bool:
    """Whether there is a current trial, or a session of `init`."""
    return bool(_sessions) or tune.is_in_trial()


@contextmanager
def checkpoint_dir(step: int) -> Iterator[str]:
    """Creates a folder for a checkpoint, which the next `report` passes to Tune.

    Args:
        step: The step of the checkpoint; the installed Tune counts reports instead.
    """
    folder = tempfile.mkdtemp(prefix=f"checkpoint_of_step_{step}_", dir=get_trial_dir())
    yield folder
    _filled.append(folder)


def report(metrics: object = None, *, checkpoint: object = None, **by_name: object) -> None:
    """Reports metrics to Tune.

    Args:
        metrics: The metrics by name, or in old code one number without a name.
        checkpoint: A `ray.tune.Checkpoint`, or None.
        **by_name: The metrics by name, as until Ray 2.6.
    """
    if metrics is not None and not isinstance(metrics, Mapping):
        metrics = {"_metric": metrics}
    folder = _filled.pop() if _filled else None
    if folder is not None and checkpoint is None:
        checkpoint = tune.checkpoint_of(folder)
    tune.tune_report({**(metrics or {}), **by_name}, checkpoint=checkpoint)
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)  # Tune has a copy


class StatusReporter:
    """The reporter of `function(config, reporter)`, with the attributes of its trial.

    Args:
        unused: Ignored: a queue and a semaphore between threads.
        trial_name: The trial's name; by default the current trial's, also for the others.
        trial_id: The trial's id.
        logdir: The trial's folder.
        trial_resources: The trial's resources.
    """

    def __init__(
        self,
        *unused: object,
        trial_name: str | None = None,
        trial_id: str | None = None,
        logdir: str | None = None,
        trial_resources: object = None,
    ) -> None:
        del unused
        self._given = {"name": trial_name, "id": trial_id, "dir": logdir}
        self._resources = trial_resources

    def __call__(self, _metric: object = None, **kwargs: object) -> None:
        """Reports metrics; see `report`."""
        report(_metric, **kwargs)

    @property
    def trial_name(self) -> str:
        """The trial's name."""
        return self._given["name"] or get_trial_name()

    @property
    def trial_id(self) -> str:
        """The trial's id."""
        return self._given["id"] or get_trial_id()

    @property
    def logdir(self) -> str:
        """The trial's folder."""
        return self._given["dir"] or get_trial_dir()

    @property
    def trial_resources(self) -> Any:
        """The trial's resources."""
        return self._resources or get_trial_resources()


_sessions: list[Any] = []


def get_session() -> Any:
    """Returns the current trial's reporter, or the one of `init`; None without either."""
    if not _sessions and tune.is_in_trial():
        return StatusReporter()
    if not _sessions:
        logger.warning("There is no session: call this in a function that Tune runs.")
    return _sessions[-1] if _sessions else None


def init(reporter: object, ignore_reinit_error: bool = True) -> None:
    """Starts a session, unless there is one.

    Args:
        reporter: The object for `get_session` to return.
        ignore_reinit_error: Whether an existing session is kept, with a warning.

    Raises:
        ValueError: There is a session, and `ignore_reinit_error` is False.
    """
    if not _sessions:
        _sessions.append(reporter)
    elif ignore_reinit_error:
        logger.warning("There is a session already, which is kept.")
    else:
        raise ValueError("There is a session already: call ray.tune.session.shutdown() first.")


def shutdown() -> None:
    """Ends the session of `init`."""
    _sessions.clear()


def with_samplers(value: object) -> Any:
    """Wraps functions of a `spec` in a config with `sample_from`.

    Tune of Ray 0.5 – 0.7 called such functions itself; later ones need `sample_from`. RLlib's own
    functions have no argument `spec`.
    """
    if isinstance(value, dict):  # not a Mapping, as gymnasium's Dict is one
        return {key: with_samplers(inner) for key, inner in value.items()}
    if inspect.isfunction(value) and list(inspect.signature(value).parameters) == ["spec"]:
        return ray.tune.sample_from(value)
    return value


def with_reporter(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps functions of (config, reporter) or (config, checkpoint_dir) as functions of config.

    Returns:
        The wrapped function, or the same one if it takes only the config.
    """
    parameters = inspect.signature(function).parameters
    if "checkpoint_dir" in parameters:
        return _with_checkpoint_dir(function)
    needed = [
        parameter
        for parameter in parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    if len(needed) != 2:
        return function

    def train(config: dict[str, Any]) -> Any:
        return function(config, StatusReporter())

    train.__name__ = getattr(function, "__name__", "train")  # the experiment's name
    return train


def _with_checkpoint_dir(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a function whose `checkpoint_dir` is the folder to continue from, or None."""

    @functools.wraps(function)
    def train(config: dict[str, Any]) -> Any:
        checkpoint = tune.checkpoint_to_resume()
        if checkpoint is None:
            return function(config)
        with checkpoint.as_directory() as folder:
            return function(config, checkpoint_dir=folder)

    del train.__wrapped__  # Tune looks at the signature
    mixed = (*getattr(train, "__mixins__", ()), CounterMixin)
    train.__mixins__ = mixed  # type: ignore[attr-defined]
    return train


class CounterMixin:
    """A mixin for the class that Tune makes of a function: its counters continue from a checkpoint.

    The installed Tune saves counters in the experiment; until Ray 2.6, each checkpoint had them.
    """

    def save_checkpoint(self, checkpoint_dir: str = "") -> Any:
        """Returns the function's last report, whose checkpoint gets the counters as metadata."""
        saved = super().save_checkpoint(checkpoint_dir)  # type: ignore[misc]  # of Tune's class
        if saved.checkpoint is not None:
            saved.checkpoint.update_metadata(tune.counters(self))
        return saved

    def load_checkpoint(self, saved: Any) -> None:
        """Loads a checkpoint; that of `tune.run(restore=…)` has no result, so sets the counters."""
        super().load_checkpoint(saved)  # type: ignore[misc]  # of Tune's class
        if not saved.metrics:
            tune.count_on(self, _counters_of(saved.checkpoint))


def _counters_of(checkpoint: Any) -> dict[str, Any]:
    """Returns the counters of a checkpoint by their names in results; empty if it has none."""
    if counters := checkpoint.get_metadata():
        return dict(counters)
    with checkpoint.as_directory() as folder:
        if not (file := Path(folder, ".tune_metadata")).is_file():
            return {}
        counters = pickles.load(file).value  # data: nothing in it is imported or called
    names = {"iteration": "training_iteration", "time_total": "time_total_s"}
    return {names.get(name, name): value for name, value in counters.items()}
