"""Functions as trainables, and how they reported, in Tune of Ray 0.5 – 2.x."""

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

# The folders of `checkpoint_dir` that no report has taken yet.
_filled: list[str] = []


def get_trial_dir() -> str:
    """The folder of the trial that calls; as for all of these, today's context has it."""
    return str(tune.tune_context().get_trial_dir())


def get_trial_id() -> str:
    """The id of the trial that calls."""
    return str(tune.tune_context().get_trial_id())


def get_trial_name() -> str:
    """The name of the trial that calls."""
    return str(tune.tune_context().get_trial_name())


def get_trial_resources() -> Any:
    """What is reserved for the trial that calls."""
    return tune.tune_context().get_trial_resources()


def is_session_enabled() -> bool:
    """Whether a trial calls, or a session was begun by hand."""
    return bool(_sessions) or tune.is_in_trial()


@contextmanager
def checkpoint_dir(step: int) -> Iterator[str]:
    """A folder for a checkpoint, which the next `report` hands to Tune.

    Args:
        step: The step that it is of; Tune counts reports today.
    """
    folder = tempfile.mkdtemp(prefix=f"checkpoint_of_step_{step}_", dir=get_trial_dir())
    yield folder
    _filled.append(folder)


def report(metrics: object = None, *, checkpoint: object = None, **by_name: object) -> None:
    """Reports metrics to Tune.

    Args:
        metrics: The metrics by name, as today; or one number without a name, as before.
        checkpoint: A `ray.tune.Checkpoint`, or None.
        **by_name: The metrics, as until Ray 2.6.
    """
    if metrics is not None and not isinstance(metrics, Mapping):
        metrics = {"_metric": metrics}
    folder = _filled.pop() if _filled else None
    if folder is not None and checkpoint is None:
        checkpoint = tune.checkpoint_of(folder)
    tune.tune_report({**(metrics or {}), **by_name}, checkpoint=checkpoint)
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)  # Tune has taken a copy


class StatusReporter:
    """What `function(config, reporter)` reports by, and what it asks of its trial.

    Args:
        unused: A queue and a semaphore between threads, which Tune keeps itself.
        trial_name: The trial's name; by default, as for the others, that of the trial that calls.
        trial_id: The trial's id.
        logdir: The trial's folder.
        trial_resources: What is reserved for the trial.
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
        """Reports metrics, as `report`."""
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
        """What is reserved for the trial."""
        return self._resources or get_trial_resources()


_sessions: list[Any] = []


def get_session() -> Any:
    """What reports for the trial that calls, or was given to `init`; None outside of both."""
    if not _sessions and tune.is_in_trial():
        return StatusReporter()
    if not _sessions:
        logger.warning("There is no session: only a function that Tune runs has one.")
    return _sessions[-1] if _sessions else None


def init(reporter: Any, ignore_reinit_error: bool = True) -> None:
    """Begins a session by hand, unless there is one.

    Args:
        reporter: What `get_session` returns from now on.
        ignore_reinit_error: Whether a session that there is already stays, with a warning.

    Raises:
        ValueError: There is one, and that is not ignored.
    """
    if not _sessions:
        _sessions.append(reporter)
    elif ignore_reinit_error:
        logger.warning("There is a session already, which stays.")
    else:
        raise ValueError("There is a session already: call ray.tune.session.shutdown() first.")


def shutdown() -> None:
    """Ends the session of `init`."""
    _sessions.clear()


def with_samplers(value: object) -> Any:
    """A config in which functions of a `spec` are drawn for each trial.

    Tune of Ray 0.5 – 0.7 called functions among the values; later ones want `sample_from` around
    them. RLlib's own take no argument of that name.
    """
    if isinstance(value, dict):  # gymnasium's Dict is another Mapping, and a value
        return {key: with_samplers(inner) for key, inner in value.items()}
    if inspect.isfunction(value) and list(inspect.signature(value).parameters) == ["spec"]:
        return ray.tune.sample_from(value)
    return value


def with_reporter(function: Callable[..., Any]) -> Callable[..., Any]:
    """Gives functions of (config, reporter) or (config, checkpoint_dir) what Tune gives no more.

    Returns:
        A function of the config; the same one, if it is that already.
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
    """A function of the config for one that takes the folder that it goes on from, or None."""

    @functools.wraps(function)
    def train(config: dict[str, Any]) -> Any:
        checkpoint = tune.checkpoint_to_resume()
        if checkpoint is None:
            return function(config)
        with checkpoint.as_directory() as folder:
            return function(config, checkpoint_dir=folder)

    del train.__wrapped__  # Tune looks at the signature
    mixed = (*getattr(train, "__mixins__", ()), CountingOn)
    train.__mixins__ = mixed  # type: ignore[attr-defined]
    return train


class CountingOn:
    """A base of the class that Tune makes of a function: its trial counts on from a checkpoint.

    Today's Tune keeps what was counted with an experiment; until Ray 2.6 each checkpoint had it.
    """

    def save_checkpoint(self, checkpoint_dir: str = "") -> Any:
        """What the function reported last; its checkpoint has what was counted, too."""
        saved = super().save_checkpoint(checkpoint_dir)  # type: ignore[misc]  # of Tune's class
        if saved.checkpoint is not None:
            saved.checkpoint.update_metadata(tune.counters(self))
        return saved

    def load_checkpoint(self, saved: Any) -> None:
        """Goes on from a checkpoint; one of `tune.run(restore=…)` comes without its result."""
        super().load_checkpoint(saved)  # type: ignore[misc]  # of Tune's class
        if not saved.metrics:
            tune.count_on(self, _counted(saved.checkpoint))


def _counted(checkpoint: Any) -> dict[str, Any]:
    """What was counted until a checkpoint, by the names in results; empty where it is not told."""
    if told := checkpoint.get_metadata():
        return dict(told)
    with checkpoint.as_directory() as folder:
        if not (file := Path(folder, ".tune_metadata")).is_file():
            return {}
        told = pickles.load(file).value  # data: nothing in it is imported or called
    names = {"iteration": "training_iteration", "time_total": "time_total_s"}
    return {names.get(name, name): value for name, value in told.items()}
