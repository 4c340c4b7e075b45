"""Tune: what it took over from `ray.train`, its registry, and its `Trainable`."""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rllib_compat.ray_versions.types import AlgorithmConfig, Trainable
    from rllib_compat.trials.experiments import OldTrial


def tune_checkpoint_config(**settings: Any) -> Any:
    """A `CheckpointConfig` for Tune."""
    return _of_tune("CheckpointConfig")(**settings)


def tune_report(metrics: dict[str, Any], *, checkpoint: object = None) -> None:
    """Reports to Tune from a function."""
    _of_tune("report")(metrics, checkpoint=checkpoint)


def tune_context() -> Any:
    """What a function that Tune runs may ask of its trial."""
    return _of_tune("get_context")()


def make_parser(parser_creator: Callable[..., Any] | None = None, **kwargs: object) -> Any:
    """The parser of a trial's flags, which Ray has kept for itself since 2.0."""
    from ray.tune.experiment import config_parser

    return config_parser._make_parser(parser_creator, **kwargs)


def is_sampled(value: object) -> bool:
    """Whether Tune draws a value of a config: a grid or a distribution."""
    from ray.tune.search.sample import Domain

    is_grid = isinstance(value, Mapping) and set(value) == {"grid_search"}
    return is_grid or isinstance(value, Domain)


def is_in_trial() -> bool:
    """Whether Tune runs the calling function; outside, contexts have no trial, or warn."""
    try:
        return tune_context().get_trial_id() is not None
    except (AttributeError, RuntimeError):
        return False


def checkpoint_of(folder: str) -> Any:
    """A folder as the checkpoint that `tune_report` takes."""
    return checkpoint_class().from_directory(folder)


def checkpoint_to_resume() -> Any:
    """The checkpoint that a function that Tune runs continues from, or None."""
    return _of_tune("get_checkpoint")()


def checkpoint_class() -> Any:
    """The class of Tune's checkpoints."""
    return _of_tune("Checkpoint")


def _of_tune(name: str) -> Any:
    """What Tune calls by a name; in Ray 2.40 it is that of `ray.train`."""
    from ray import train, tune

    return getattr(tune if hasattr(tune, name) else train, name)


def add_legacy_trial_names(path_of: Callable[[Any], str]) -> None:
    """Lets trials and their checkpoints answer to names that raise today, or have no owner.

    `trial.logdir` and `trial.init_logdir()` raise since Ray 2.7; `trial.local_path` has neither
    checkpoints nor results. A checkpoint was its path until Ray 1.13, or had it as `value`, in Ray
    2.0 as `dir_or_data`; `os.path` and `open` take it for its path again. A trial without a
    checkpoint had one without a `value`, not None. Results had a `log_dir` until Ray 2.6.

    Args:
        path_of: The path that a checkpoint had as `value`.
    """
    from ray.air.result import Result
    from ray.train import Checkpoint
    from ray.tune.experiment import Trial

    if not hasattr(Checkpoint, "value"):
        of_trial = Trial.checkpoint.fget
        Trial.on_checkpoint = _with_its_number(Trial.on_checkpoint)
        Trial.checkpoint = property(lambda trial: of_trial(trial) or NoCheckpoint())
        Trial.has_checkpoint = lambda trial: of_trial(trial) is not None
    Trial.init_logdir = Trial.init_local_path
    Trial.logdir = property(_folder_of_trial)
    Trial.runner = property(lambda trial: trial.temporary_state.ray_actor)
    Trial.location = property(lambda trial: trial.temporary_state.location)
    Trial.start_time = property(lambda trial: trial.run_metadata.start_time)
    Result.log_dir = property(lambda result: Path(result.path))
    Checkpoint.value = Checkpoint.dir_or_data = property(path_of)
    Checkpoint.__fspath__ = lambda checkpoint: str(checkpoint.path)


def _with_its_number(on_checkpoint: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
    """Lets a trial that is started again number its checkpoints on from its last one."""

    def with_number(trial: Any, saved: Any) -> None:
        on_checkpoint(trial, saved)
        last = _number_of(Path(saved.checkpoint.path))
        trial.storage.current_checkpoint_index = max(trial.storage.current_checkpoint_index, last)

    return with_number


def number_by_iteration(trainable: Trainable, iteration: int) -> None:
    """Gives the next checkpoint of a trial the number of its iteration, as until Ray 2.6.

    It stays larger than those before: no checkpoint takes the place of another one.
    """
    storage = trainable._storage
    storage.current_checkpoint_index = max(storage.current_checkpoint_index, iteration - 1)


class NoCheckpoint:
    """The false value that a trial without a checkpoint has as its `checkpoint`."""

    value = None

    def __bool__(self) -> bool:
        """False."""
        return False


def _folder_of_trial(trial: Any) -> str:
    """Where a trial's results and checkpoints are, if that is a folder of this machine."""
    if trial.storage.storage_filesystem.type_name != "local":
        return str(trial.local_path)
    Path(trial.path).mkdir(parents=True, exist_ok=True)  # callbacks write before Tune does
    return str(trial.path)


def is_registered_env(name: object) -> bool:
    """Whether `ray.tune.register_env` has had this name."""
    return _is_registered("ENV_CREATOR", name)


def registered_env(name: str) -> Callable[[Any], Any]:
    """The creator that `ray.tune.register_env` was given under a name."""
    from ray.tune import registry

    creator: Callable[[Any], Any] = registry._global_registry.get(registry.ENV_CREATOR, name)
    return creator


def is_registered_input(name: object) -> bool:
    """Whether `ray.tune.register_input` has had this name."""
    return _is_registered("RLLIB_INPUT", name)


def is_registered_trainable(name: object) -> bool:
    """Whether `ray.tune.register_trainable` has had this name."""
    return _is_registered("TRAINABLE_CLASS", name)


def _is_registered(category: str, name: object) -> bool:
    # Who registers a name has imported the registry; without it there is nothing to ask.
    registry = sys.modules.get("ray.tune.registry")
    if registry is None or not isinstance(name, str):
        return False
    return bool(registry._global_registry.contains(getattr(registry, category), name))


def without_logger(config: AlgorithmConfig, logdir: str) -> None:
    """Keeps an algorithm from writing its results to files, where its owner does it.

    In Ray 2.40, whatever is trained logs by itself, with loggers that warn that they are old.
    """
    from ray.rllib.algorithms.algorithm import Algorithm

    if "logger_creator" in inspect.signature(Algorithm.__init__).parameters:
        config.debugging(logger_creator=partial(_no_logger, logdir))


#: What the `Trainable` of some Ray took beside the config.
_OF_TRAINABLES = {
    *("logger_creator", "storage", "remote_checkpoint_dir"),
    *("sync_function_tpl", "custom_syncer", "sync_timeout"),
}


@cache
def tensorboard_logger() -> type:
    """Tune's logger for TensorBoard, which writes all numbers of a result as one event.

    So did TensorFlow's. tensorboardX sends each number through a pipe to a thread, which takes
    longer than a hundred steps of a small network.
    """
    from ray.tune.logger import TBXLoggerCallback
    from tensorboardX import SummaryWriter, summary
    from tensorboardX.proto.summary_pb2 import Summary

    class ResultWriter(SummaryWriter):  # type: ignore[misc,unused-ignore]  # it has no types
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self._numbers, self._step = Summary(), None

        def add_scalar(self, tag: str, scalar_value: Any, global_step: Any = None) -> None:
            self._numbers.MergeFrom(summary.scalar(tag, scalar_value))
            self._step = global_step

        def flush(self) -> None:
            if self._numbers.value:
                self.file_writer.add_summary(self._numbers, self._step)
                self._numbers = Summary()
            super().flush()

    class ResultLogger(TBXLoggerCallback):  # type: ignore[misc]  # Ray has no types
        def __init__(self) -> None:
            super().__init__()
            self._summary_writer_cls = ResultWriter

    return ResultLogger


def trainable_arguments(given: dict[str, Any]) -> dict[str, Any]:
    """What of the given arguments a `Trainable` takes, and what keeps it from logging by itself.

    Raises:
        TypeError: No Ray's took one of them.
    """
    from ray import tune

    accepted = inspect.signature(tune.Trainable.__init__).parameters
    if unknown := given.keys() - accepted.keys() - _OF_TRAINABLES:
        raise TypeError(f"Trainer() has no argument {', '.join(sorted(unknown))}.")
    if "logger_creator" in accepted and given.get("storage") is None:
        given = {"logger_creator": partial(_no_logger, None), **given}
    return {name: value for name, value in given.items() if name in accepted}


def _no_logger(logdir: str | None, config: AlgorithmConfig) -> Any:
    from ray.tune.logger import NoopLogger

    if logdir is None:
        results = Path("~/ray_results").expanduser()
        results.mkdir(parents=True, exist_ok=True)
        now = datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
        import tempfile  # not needed by what only reads

        logdir = tempfile.mkdtemp(prefix=now, dir=results)
    return NoopLogger(config, logdir)


def has_storage(trainable: Trainable) -> bool:
    """Whether Tune keeps a trainable's results and checkpoints."""
    return trainable._storage is not None


def folder_of(trainable: Trainable) -> str:
    """Where a trainable's files go, if it has no logger of its own."""
    return str(trainable._logdir)


def trial_storage(trainable: Trainable) -> tuple[Any, str] | None:
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


def experiment_state(analysis: Any) -> dict[str, Any]:
    """What Tune has saved of an analysis's experiment last, as data; nothing in it is run."""
    file = analysis._experiment_json_fs_path
    with analysis._fs.open_input_stream(file) as stream:
        state: dict[str, Any] = json.loads(stream.readall())
    saved = analysis._fs.get_file_info(file).mtime
    return {**state, "stats": {"timestamp": saved.timestamp(), **state["stats"]}}


def mark_restored(trainable: Trainable, *, iteration: int) -> None:
    """Makes a trainable count on from a checkpoint, as `Trainable.restore` does."""
    trainable._iteration = iteration
    trainable._time_since_restore, trainable._iterations_since_restore = 0.0, 0
    trainable._timesteps_since_restore = 0


#: What `Trainable.restore` takes from the result of a checkpoint → where a trainable counts it.
_COUNTERS = {
    "training_iteration": "_iteration",
    "time_total_s": "_time_total",
    "timesteps_total": "_timesteps_total",
    "episodes_total": "_episodes_total",
}


def counters(trainable: object) -> dict[str, Any]:
    """What a trainable has counted so far, by the names in its results."""
    return {name: getattr(trainable, own) for name, own in _COUNTERS.items()}


def count_on(trainable: object, counted: Mapping[str, Any]) -> None:
    """Makes a trainable continue from what `counters` gave."""
    for name in counted.keys() & _COUNTERS.keys():
        setattr(trainable, _COUNTERS[name], counted[name])


def mark_restored_by_tune(trainable: Trainable, *, time_total: float) -> None:
    """Says that Tune has restored a trainable, after so many seconds of training."""
    trainable._time_total = time_total
    trainable._restored = True


def finished_trial(old: OldTrial, experiment: Path) -> Any:
    """A trial as a `Trial` that describes it, and runs nothing."""
    from ray.train._internal.storage import StorageContext
    from ray.tune.experiment import Trial

    class ReadOnly(StorageContext):  # type: ignore[misc]  # Ray has no types
        """Where the files are; Ray's own writes one to see whether it may."""

        def _create_validation_file(self) -> None: ...
        def _check_validation_file(self) -> None: ...

    storage = ReadOnly(
        storage_path=str(experiment.parent),
        experiment_dir_name=experiment.name,
        trial_dir_name=old.folder.name if old.folder else old.trial_id,
    )
    trial = Trial(
        old.trainable,
        config=old.config,
        trial_id=old.trial_id,
        storage=storage,
        experiment_tag=old.tag,
        stub=True,
    )
    _tell_results(trial, old)
    trial.status = Trial.PENDING if old.status == Trial.RUNNING else old.status  # nothing runs it
    return trial


def _tell_results(trial: Any, old: OldTrial) -> None:
    """Tells a trial what it has logged and saved, as if it had run here."""
    from ray.train import Checkpoint
    from ray.train._internal.session import _TrainingResult

    by_iteration = {}
    for result in old.results:
        trial.update_last_result(dict(result))
        by_iteration[result.get("training_iteration")] = result
    for iteration, folder in old.checkpoints.items():
        metrics = {"training_iteration": iteration, **by_iteration.get(iteration, {})}
        saved = _TrainingResult(checkpoint=Checkpoint(str(folder)), metrics=metrics)
        trial.run_metadata.checkpoint_manager.register_checkpoint(saved)


def begin_analysis(analysis: Any, experiment: Path, trials: list[Any]) -> None:
    """Gives a new `ExperimentAnalysis` its trials; Ray's constructor reads today's files alone."""
    import pandas as pd  # type: ignore[import-untyped]
    from pyarrow.fs import LocalFileSystem

    states = sorted(experiment.glob("experiment_state*.json"))
    analysis._fs = LocalFileSystem()
    analysis._experiment_fs_path = str(experiment)
    analysis._experiment_json_fs_path = str(states[-1]) if states else None
    analysis.trials = trials
    files = {trial.trial_id: Path(trial.storage.trial_fs_path, "progress.csv") for trial in trials}
    analysis._trial_dataframes = {
        trial_id: pd.read_csv(file, dtype={"trial_id": str}) if file.is_file() else pd.DataFrame()
        for trial_id, file in files.items()
    }
    analysis._configs = {trial.trial_id: trial.config for trial in trials}


def unfinished_trial(
    old: OldTrial, experiment: Path, trainable: object, given: Mapping[str, Any]
) -> Any:
    """A trial as a `Trial` that continues where it stopped.

    Of what was given to `tune.run`, arguments about resources, checkpoints and failures count;
    those about the last two are its own by default.
    """
    from ray.train._internal.storage import StorageContext
    from ray.tune.experiment import Experiment, Trial

    storage = StorageContext(
        storage_path=str(experiment.parent),
        experiment_dir_name=experiment.name,
        trial_dir_name=old.folder.name if old.folder else None,
        current_checkpoint_index=max(map(_number_of, old.checkpoints.values()), default=-1),
    )
    resources = given.get("resources_per_trial")
    trial = Trial(
        Experiment.register_if_needed(trainable),
        config=old.config,
        trial_id=old.trial_id,
        storage=storage,
        experiment_tag=old.tag,
        stopping_criterion=old.stop,
        placement_group_factory=resources,
        checkpoint_config=given.get("checkpoint_config") or tune_checkpoint_config(**old.saving),
        max_failures=given.get("max_failures", old.max_failures) or 0,
    )
    trial.relative_logdir = storage.trial_dir_name  # results are appended to those in its folder
    _tell_results(trial, old)
    trial.create_placement_group_factory()
    trial.status = old.status if old.status in ("TERMINATED", "ERROR") else Trial.PENDING
    return trial


def _number_of(checkpoint: Path) -> int:
    return int(re.split(r"[-_]", checkpoint.name)[-1])


def share_driver_folder(trials: list[Any]) -> None:
    """Lets all trials write where the first one does: Ray saves only that folder of the driver."""
    for trial in trials:
        trial.storage._timestamp = trials[0].storage._timestamp


def experiment_state_of(trials: list[Any]) -> tuple[str, str]:
    """What Ray resumes trials from: a file's name, and its text."""
    from ray.tune.utils.serialization import TuneFunctionEncoder

    now = datetime.now()
    session = now.strftime("%Y-%m-%d_%H-%M-%S")
    state = {
        "trial_data": [trial.get_json_state() for trial in trials],
        "runner_data": {"_session_str": session, "_start_time": now.timestamp()},
        "stats": {"start_time": now.timestamp()},
    }
    return f"experiment_state-{session}.json", json.dumps(state, cls=TuneFunctionEncoder)


def folder_of_experiment(experiment: Any) -> Path:
    """Where an `Experiment` has its trials; nowhere on this machine, if its storage is remote."""
    return Path(experiment.storage.experiment_fs_path)


def resume_config(*, unfinished: bool, errored: bool, restart_errored: bool) -> Any:
    """Which trials of an experiment continue, by the arguments of `Tuner.restore`."""
    from ray.tune import ResumeConfig

    kinds = ResumeConfig.ResumeType
    failed = kinds.RESTART if restart_errored else kinds.RESUME if errored else kinds.SKIP
    return ResumeConfig(unfinished=kinds.RESUME if unfinished else kinds.SKIP, errored=failed)
