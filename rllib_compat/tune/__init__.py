"""`ray.tune` for code of Ray 0.5 – 2.x: `from rllib_compat import tune`.

`run`, `run_experiments` and `Tuner` take the names of RLlib's algorithms, legacy configs and old
arguments. Every other name is `ray.tune`'s own.
"""

from __future__ import annotations

import inspect
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import ray.tune

from rllib_compat.config import era
from rllib_compat.formats.layouts.search import whole_of
from rllib_compat.formats.paths import local_path, storage_path
from rllib_compat.neutral.errors import ConfigError
from rllib_compat.ray_versions import tune
from rllib_compat.trainer.classes import class_of_algorithm, keep_era, raise_if_removed
from rllib_compat.trainer.fluent import LegacyConfig
from rllib_compat.trainer.preparation import with_extra
from rllib_compat.trainer.result_files import UnifiedLogger as UnifiedLogger
from rllib_compat.trainer.trainer import Trainer
from rllib_compat.trials.experiments import read_experiment
from rllib_compat.tune import schedulers as schedulers
from rllib_compat.tune.analysis import Analysis as Analysis
from rllib_compat.tune.analysis import ExperimentAnalysis as ExperimentAnalysis
from rllib_compat.tune.analysis import path_of, with_legacy_methods
from rllib_compat.tune.functions import checkpoint_dir as checkpoint_dir
from rllib_compat.tune.functions import get_trial_dir as get_trial_dir
from rllib_compat.tune.functions import get_trial_id as get_trial_id
from rllib_compat.tune.functions import get_trial_name as get_trial_name
from rllib_compat.tune.functions import get_trial_resources as get_trial_resources
from rllib_compat.tune.functions import is_session_enabled as is_session_enabled
from rllib_compat.tune.functions import report as report
from rllib_compat.tune.functions import with_reporter, with_samplers
from rllib_compat.tune.resuming import RESUME, prepare_resume, warn_of_lost_progress
from rllib_compat.tune.trainables import Trainable as Trainable

__all__ = [
    "Analysis",
    "Experiment",
    "ExperimentAnalysis",
    "Trainable",
    "Tuner",
    "UnifiedLogger",
    "checkpoint_dir",
    "function",
    "get_trial_dir",
    "get_trial_id",
    "get_trial_name",
    "get_trial_resources",
    "is_session_enabled",
    "register_trainable",
    "report",
    "run",
    "run_experiments",
]

logger = logging.getLogger(__name__)

DEFAULT_RESULTS_DIR = str(local_path("~/ray_results"))

Function = TypeVar("Function", bound=Callable[..., Any])

RENAMED = {
    "local_dir": "storage_path",
    "upload_dir": "storage_path",
    "trial_resources": "resources_per_trial",
    "repeat": "num_samples",
}
CHECKPOINT_CONFIG = {
    "checkpoint_freq": "checkpoint_frequency",
    "checkpoint_at_end": "checkpoint_at_end",
    "keep_checkpoints_num": "num_to_keep",
    "checkpoint_score_attr": "checkpoint_score_attribute",
}
# Arguments that Tune has removed, none of which changes training, and what to do instead.
DROPPED = {
    "global_checkpoint_period": "set TUNE_GLOBAL_CHECKPOINT_S",
    "queue_trials": "trials always wait for resources",
    "ray_auto_init": "Ray is always started if it is not running",
    "run_errored_only": "pass resume='AUTO+ERRORED_ONLY'",
    "server_port": "Tune has no server",
    "sync_function": "Ray synchronizes files below storage_path",
    "sync_on_checkpoint": "Ray synchronizes files below storage_path",
    "sync_to_cloud": "Ray synchronizes files below storage_path",
    "sync_to_driver": "Ray synchronizes files below storage_path",
    "trial_executor": "Ray has only one",
    "with_server": "Tune has no server",
}
# Sections of Ray 2.x results whose keys are at the top level of this package's results.
SECTIONS = ("sampler_results/",)
EVALUATION = "evaluation/"


def run(run_or_experiment: object, name: str | None = None, **arguments: object) -> Any:
    """`ray.tune.run`, also with the arguments of old Rays.

    Args:
        run_or_experiment: An algorithm's name in any Ray, a trainer class, a function of
            (config, reporter), or anything that `ray.tune.run` takes.
        name: The experiment's name, which its folder has; for code of Ray 2.7 and before, that of
            the algorithm by default.
        **arguments: The arguments of any Ray: `local_dir`, `checkpoint_freq`, `loggers`, ….

    Returns:
        The analysis; with `return_trials=True`, the trials.

    Raises:
        RefusedKeysError: Ray has removed the algorithm without a replacement.
    """
    as_trials = arguments.pop("return_trials", False)
    if isinstance(config := arguments.get("config"), LegacyConfig):
        arguments["config"] = config.to_dict()
    today = _todays_arguments(_with_callbacks(arguments))
    trainable = _trainable(run_or_experiment)
    if isinstance(run_or_experiment, str) and era.is_code_until("2.7.2"):
        name = name or run_or_experiment  # the date is in the names of others' folders alone
    if name and (today.get("resume") or today.get("resume_config")):
        folder = Path(today.get("storage_path") or DEFAULT_RESULTS_DIR, name)
        trainable = prepare_resume(folder, trainable, today)
    analysis = ray.tune.run(trainable, name=name, **today)
    if as_trials:
        return analysis.trials
    return with_legacy_methods(analysis)


def run_experiments(
    experiments: object, *, concurrent: bool = True, **arguments: object
) -> list[Any]:
    """`ray.tune.run_experiments`, with specs and arguments of any Ray.

    Args:
        experiments: Specs by name (`{"run": "PPO", "env": …, "stop": …, "config": …}`), or
            `Experiment`s.
        concurrent: Whether to run them at the same time.
        **arguments: The arguments of any Ray: `scheduler`, `search_alg`, `queue_trials`, ….

    Returns:
        The trials.
    """
    if isinstance(experiments, Mapping):
        found = [_experiment(*named) for named in experiments.items()]
    else:
        found = list(experiments) if isinstance(experiments, Sequence) else [experiments]
    today = _todays_arguments(_with_callbacks(arguments))
    for experiment in found if today.get("resume") else ():
        given = {**experiment.spec, "checkpoint_config": experiment.checkpoint_config}
        prepare_resume(tune.folder_of_experiment(experiment), experiment.run_identifier, given)
    groups = [found] if concurrent else [[experiment] for experiment in found]
    return [trial for group in groups for trial in ray.tune.run(group, **today).trials]


class Experiment(ray.tune.Experiment):  # type: ignore[misc]  # Ray has no types
    """`ray.tune.Experiment`, also with the arguments of old Rays.

    Args:
        name: Its name.
        run: See `run`.
        **arguments: The arguments of any Ray: `local_dir`, `checkpoint_at_end`, ….
    """

    def __init__(self, name: str, run: object, **arguments: object) -> None:
        super().__init__(name, _trainable(run), **_todays_arguments(arguments))


class Tuner(ray.tune.Tuner):  # type: ignore[misc]  # Ray has no types
    """`ray.tune.Tuner` that takes the names of RLlib's algorithms.

    Args:
        trainable: An algorithm's name in any Ray, a trainer class, or anything that Ray's takes.
        **arguments: The arguments of `ray.tune.Tuner`; `param_space` is a legacy config.
    """

    def __init__(self, trainable: object = None, **arguments: object) -> None:
        tune.add_legacy_trial_names(path_of)
        if isinstance(space := arguments.get("param_space"), LegacyConfig):
            if (config := space.todays()) is not None:
                arguments["param_space"] = config
                super().__init__(trainable, **arguments)
                return
            arguments["param_space"] = space.to_dict()
        super().__init__(_trainable(trainable), **arguments)

    @classmethod
    def restore(
        cls,
        path: str | os.PathLike[str],
        trainable: object = None,
        resume_unfinished: bool = True,
        resume_errored: bool = False,
        restart_errored: bool = False,
        param_space: Mapping[str, Any] | None = None,
        **more: object,
    ) -> Any:
        """Restores an experiment of the installed Ray or an old one, to continue it.

        Args:
            path: Its folder.
            trainable: The trainable of its trials; of an old experiment, by default its algorithm.
            resume_unfinished: Whether unfinished trials continue.
            resume_errored: Whether failed trials continue.
            restart_errored: Whether failed trials restart.
            param_space: The config, if it contained code.
            **more: Other arguments of Ray's method.
        """
        place = storage_path(path)
        old, is_old = ([], False) if "://" in place else read_experiment(Path(place))
        if not is_old:
            warn_of_lost_progress(old)
            return super().restore(
                place,
                _trainable(trainable),
                resume_unfinished=resume_unfinished,
                resume_errored=resume_errored,
                restart_errored=restart_errored,
                param_space=param_space,
                **more,
            )
        how = tune.resume_config(
            unfinished=resume_unfinished, errored=resume_errored, restart_errored=restart_errored
        )
        return OldExperiment(Path(place), trainable or old[0].trainable, how, param_space)


@dataclass
class OldExperiment:
    """An experiment of an old Ray, with the methods of a `Tuner`.

    Attributes:
        folder: Its folder.
        trainable: The trainable of its trials.
        how: Ray's `ResumeConfig`: which trials continue.
        config: The config of the trials, if it contained code.
    """

    folder: Path
    trainable: object
    how: object
    config: Mapping[str, Any] | None

    def fit(self) -> Any:
        """Continues the trials, and returns their results."""
        analysis = run(
            self.trainable,
            self.folder.name,
            storage_path=str(self.folder.parent),
            resume_config=self.how,
            config=dict(self.config or {}),
            raise_on_failed_trial=False,
        )
        return ray.tune.ResultGrid(analysis)

    def get_results(self) -> Any:
        """Returns the results so far."""
        return ray.tune.ResultGrid(ExperimentAnalysis(self.folder))


def function(func: Function) -> Function:
    """Returns a config's function unchanged; old Tunes called functions that were not wrapped."""
    return func


def register_trainable(name: str, trainable: object, **arguments: object) -> None:
    """`ray.tune.register_trainable`, also for functions of (config, reporter)."""
    ray.tune.register_trainable(name, _trainable(trainable), **arguments)


def __getattr__(name: str) -> Any:
    return getattr(ray.tune, name)


def _trainable(given: object) -> Any:
    """Converts an algorithm's name or a function to a trainable; other values stay."""
    if inspect.isfunction(given):
        return with_reporter(given)
    if isinstance(given, str):
        if _registered_by_user(given):
            return given
        try:
            given = class_of_algorithm(given)
        except ConfigError:
            return given  # Ray raises its own error
    if isinstance(given, type) and issubclass(given, Trainer):
        raise_if_removed(given.algorithm_name)
        return keep_era(given)
    return given


def _registered_by_user(name: str) -> bool:
    """Whether the user has registered a trainable of this name.

    Ray registers each class that it runs by the class's name, also this package's.
    """
    from ray.rllib.algorithms.registry import ALGORITHMS

    if name in ALGORITHMS or not tune.is_registered_trainable(name):
        return False
    module: str = ray.tune.registry.get_trainable_cls(name).__module__
    return module.partition(".")[0] != __name__.partition(".")[0]


def _experiment(name: str, spec: Mapping[str, Any]) -> Any:
    spec = _todays_arguments(spec)
    spec["run"] = _trainable(spec["run"])
    return ray.tune.Experiment.from_json(name, spec)


def _with_callbacks(arguments: dict[str, Any]) -> dict[str, Any]:
    """Replaces `loggers` in arguments with a callback."""
    from rllib_compat.tune.loggers import LegacyLoggerCallback

    tune.add_legacy_trial_names(path_of)
    loggers = arguments.pop("loggers", None)
    if loggers:
        arguments["callbacks"] = [
            *(arguments.get("callbacks") or ()),
            LegacyLoggerCallback(loggers),
        ]
    return arguments


def _todays_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Converts the arguments of `run` or of a spec to those of the installed Tune."""
    today = {k: v for k, v in arguments.items() if k not in CHECKPOINT_CONFIG and k not in DROPPED}
    for name, why in DROPPED.items():
        if arguments.get(name):
            logger.warning("`%s` is ignored, because Tune has removed it: %s.", name, why)
    for name, new in RENAMED.items():
        if today.get(name) is not None:
            today[new] = today[name]
        today.pop(name, None)
    if isinstance(config := today.get("config"), Mapping):
        today["config"] = with_samplers(config)
    if isinstance(path := today.get("storage_path"), (str, Path)):
        today["storage_path"] = storage_path(path)
    if today.get("resume") in RESUME:
        today["resume"] = RESUME[today["resume"]]
    if "resources_per_trial" in today:
        today["resources_per_trial"] = with_extra(today["resources_per_trial"])
    checkpoints = {CHECKPOINT_CONFIG[k]: v for k, v in arguments.items() if k in CHECKPOINT_CONFIG}
    if any(checkpoints.values()):
        today["checkpoint_config"] = _checkpoint_config(today.get("checkpoint_config"), checkpoints)
    if isinstance(stop := today.get("stop"), Mapping):
        today["stop"] = {_todays_metric(key): value for key, value in stop.items()}
    if (restore := today.get("restore")) is not None:
        path = whole_of(local_path(restore).absolute())
        # Until Ray 2.0, the path of a checkpoint was that of a file in its folder.
        today["restore"] = str(path.parent if path.is_file() else path)
    return today


def _checkpoint_config(given: ray.tune.CheckpointConfig | None, legacy: Mapping[str, Any]) -> Any:
    config = given or tune.tune_checkpoint_config()
    for name, value in legacy.items():
        if value is not None:
            setattr(config, name, value)
    attribute = config.checkpoint_score_attribute
    if attribute and attribute.startswith("min-"):
        config.checkpoint_score_attribute = attribute.removeprefix("min-")
        config.checkpoint_score_order = "min"
    return config


def _todays_metric(key: str) -> str:
    if key.startswith(EVALUATION):
        return EVALUATION + _todays_metric(key.removeprefix(EVALUATION))
    return next((key.removeprefix(s) for s in SECTIONS if key.startswith(s)), key)
