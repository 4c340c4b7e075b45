"""`ExperimentAnalysis` and `Analysis` of Ray 0.8 – 2.6, also of old Rays' experiments."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ray.tune.analysis import ExperimentAnalysis as RayAnalysis

from rllib_compat.formats.paths import local_path, storage_path
from rllib_compat.ray_versions import tune
from rllib_compat.ray_versions.tune import checkpoint_class
from rllib_compat.trainer.checkpoints import named_as_by_code
from rllib_compat.trials.experiments import read_old_experiment

if TYPE_CHECKING:
    from ray.tune.experiment import Trial


class ExperimentAnalysis(RayAnalysis):  # type: ignore[misc]  # Ray has no types
    """Ray's analysis with its methods until Ray 2.6.

    Results, configs and checkpoints of an old Ray are read as data, without executing anything;
    code in configs is text.

    Args:
        experiment_checkpoint_path: The experiment's folder, or the file of its state.
        trials: The trials, if they are in memory.
        default_metric: The metric to compare results by.
        default_mode: "min" or "max".
        **more: Other arguments of Ray's class.
    """

    def __init__(
        self,
        experiment_checkpoint_path: str | os.PathLike[str],
        trials: list[Trial] | None = None,
        default_metric: str | None = None,
        default_mode: str | None = None,
        **more: Any,
    ) -> None:
        tune.add_legacy_trial_names(path_of)
        defaults = {"default_metric": default_metric, "default_mode": default_mode}
        place = storage_path(experiment_checkpoint_path)
        elsewhere = "://" in place or more.get("storage_filesystem") is not None
        old = None if trials or elsewhere else read_old_experiment(local_path(place))
        if old is None:
            super().__init__(place, trials=trials, **defaults, **more)
            return
        folder = Path(place) if Path(place).is_dir() else Path(place).parent
        tune.begin_analysis(self, folder, [tune.finished_trial(one, folder) for one in old])
        self.default_metric, self.default_mode = default_metric, default_mode

    def get_best_logdir(
        self, metric: str | None = None, mode: str | None = None, scope: str = "last"
    ) -> str:
        """Returns the folder of the best trial."""
        return str(self.get_best_trial(metric, mode, scope).path)

    @property
    def trial_dataframes(self) -> dict[str, Any]:
        """The results of each trial as a data frame, by the trial's folder."""
        return self._by_folder(super().trial_dataframes)

    def fetch_trial_dataframes(self) -> dict[str, Any]:
        """Returns `trial_dataframes`."""
        return self.trial_dataframes

    def get_all_configs(self, prefix: bool = False) -> dict[str, dict[str, Any]]:
        """Returns the config of each trial, by the trial's folder.

        Args:
            prefix: Whether to flatten configs to keys with the prefix `config/`.
        """
        found = super().get_all_configs(prefix)
        begun = {trial.trial_id for trial in self.trials if Path(trial.path).is_dir()}
        return self._by_folder({k: config for k, config in found.items() if k in begun})

    @property
    def best_dataframe(self) -> Any:
        """The results of the best trial."""
        return self.trial_dataframes[self.best_logdir]

    def _validate_mode(self, mode: str | None) -> str:
        return str(super()._validate_mode(mode or self.default_mode or "max"))

    def _by_folder(self, by_trial: Mapping[str, Any]) -> dict[str, Any]:
        """Converts a dict by trial ids, as since Ray 2.7, to one by folders."""
        known = {trial.trial_id: str(trial.path) for trial in self.trials}
        return {known[trial_id]: value for trial_id, value in by_trial.items()}

    def stats(self) -> dict[str, Any]:
        """Returns the times of the experiment's start and last save, in s since 1970."""
        return dict(tune.experiment_state(self)["stats"])

    def runner_data(self) -> dict[str, Any]:
        """Returns the installed Tune's own state for resuming."""
        return dict(tune.experiment_state(self)["runner_data"])

    def set_filetype(self, file_type: str | None = None) -> bool:
        """Whether results can be read from files of a type; they can from both.

        Args:
            file_type: "csv", "json", or None for any.
        """
        return file_type in (None, "csv", "json")

    @property
    def best_logdir(self) -> str:
        """The folder of the best trial by the metric of `run`."""
        return self.get_best_logdir()

    def get_best_checkpoint(
        self, trial: Trial, metric: str | None = None, mode: str | None = None
    ) -> TrialCheckpoint | None:
        """Returns the best checkpoint of a trial, which is also the string of its path."""
        found = super().get_best_checkpoint(trial, metric, mode)
        return found and TrialCheckpoint.of(found)

    def get_trial_checkpoints_paths(
        self, trial: Trial | str, metric: str = "training_iteration"
    ) -> list[tuple[str, Any]]:
        """Returns the paths of a trial's checkpoints, each with its value of `metric`."""
        pairs = self._get_trial_checkpoints_with_metric(trial, metric)
        return [(path_of(checkpoint), value) for checkpoint, value in pairs]

    def _get_trial_checkpoints_with_metric(
        self, trial: Trial | str, metric: str | None = None
    ) -> list[tuple[Any, Any]]:
        if isinstance(trial, (str, Path)):
            folder = str(local_path(trial).absolute())
            (trial,) = (one for one in self.trials if str(one.path) == folder)
        return list(super()._get_trial_checkpoints_with_metric(trial, metric))


class Analysis(ExperimentAnalysis):
    """`Analysis` of Ray 0.8 – 1.12, which compares the best results of trials, not the last."""

    def get_best_logdir(
        self, metric: str | None = None, mode: str | None = None, scope: str = "all"
    ) -> str:
        """Returns the folder of the best trial."""
        return super().get_best_logdir(metric, mode, scope)

    def get_best_config(
        self, metric: str | None = None, mode: str | None = None, scope: str = "all"
    ) -> dict[str, Any] | None:
        """Returns the config of the best trial."""
        found: dict[str, Any] | None = super().get_best_config(metric, mode, scope)
        return found


def with_legacy_methods(analysis: RayAnalysis) -> Any:
    """Returns an analysis with the legacy methods, whose default mode is "max"."""
    legacy = ExperimentAnalysis.__new__(ExperimentAnalysis)  # its constructor reads all files
    mode = analysis.default_mode or (analysis.default_metric and "max")
    legacy.__dict__.update(vars(analysis), default_mode=mode)
    return legacy


def path_of(checkpoint: Any) -> str:
    """Returns a checkpoint's path; until Ray 1.13, that of a file in its folder.

    Old code looks in the folders above it, for the config of the trial, for example.
    """
    folder = Path(checkpoint.path)
    file = folder / f"checkpoint-{folder.name.rpartition('_')[2].lstrip('0')}"
    of_a_file = file.is_file() and not (folder / ".tune_metadata").is_file()
    return str(file) if of_a_file else named_as_by_code(str(checkpoint.path))


class TrialCheckpoint(str, checkpoint_class()):  # type: ignore[misc]  # Ray has no types
    """Ray's checkpoint, which is also the string of its path.

    Args:
        local_path: The path on this machine.
        cloud_path: The URI of a checkpoint that is not on this machine.
    """

    def __new__(
        cls, local_path: str | None = None, cloud_path: str | None = None
    ) -> TrialCheckpoint:
        """Creates the string of the path."""
        return super().__new__(cls, local_path or cloud_path or "")

    def __init__(self, local_path: str | None = None, cloud_path: str | None = None) -> None:
        checkpoint_class().__init__(self, local_path or cloud_path or "")
        self.local_path, self.cloud_path = local_path, cloud_path

    @classmethod
    def of(cls, checkpoint: Any) -> TrialCheckpoint:
        """Converts a checkpoint of the installed Ray."""
        made = cls(path_of(checkpoint))
        made.path, made.filesystem = checkpoint.path, checkpoint.filesystem
        return made
