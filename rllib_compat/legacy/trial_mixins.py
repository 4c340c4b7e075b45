"""What `ray.tune.integration` had for MLflow, Weights & Biases and MXNet (Ray 0.8 – 2.3)."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import ray.tune

from rllib_compat.tune import functions, loggers

__all__ = [
    "MLflowTrainableMixin",
    "TuneCallback",
    "TuneCheckpointCallback",
    "TuneReportCallback",
    "WandbLogger",
    "WandbTrainableMixin",
    "mlflow_mixin",
    "wandb_mixin",
]

Function = TypeVar("Function")


def _options(trainable: object, config: Mapping[str, Any], library: str, needed: str) -> Any:
    """The options of a library in a config.

    Raises:
        ValueError: The object is no trainable, or the config lacks a key.
    """
    if not isinstance(trainable, ray.tune.Trainable):
        raise ValueError(f"{type(trainable).__name__} is not derived from ray.tune.Trainable.")
    if needed not in config.get(library, {}):
        raise ValueError(f"The config has no {library!r} with {needed!r}.")
    return dict(config[library])


class MLflowTrainableMixin:
    """Gives each trial a run of MLflow, which needs its package."""

    def __init__(self: Any, config: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        options = _options(self, config, "mlflow", "tracking_uri")
        super().__init__(config, *args, **kwargs)  # type: ignore[call-arg]
        self._mlflow = importlib.import_module("mlflow")
        self._mlflow.set_tracking_uri(options["tracking_uri"])
        by = {name: options[name] for name in ("experiment_id",) if options.get(name)}
        self._mlflow.set_experiment(**by or {"experiment_name": options["experiment_name"]})
        name = f"{self.trial_name}_{self.trial_id}".replace("/", "_")
        self._mlflow.start_run(run_name=name)

    def stop(self: Any) -> None:
        """Ends the run, and the trial."""
        self._mlflow.end_run()
        super().stop()  # type: ignore[misc]


class WandbTrainableMixin:
    """Gives each trial a run of Weights & Biases, which needs its package.

    Attributes:
        wandb: The run.
    """

    def __init__(self: Any, config: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        options = _options(self, config, "wandb", "project")
        own = dict(config)
        del own["wandb"]
        super().__init__(own, *args, **kwargs)  # type: ignore[call-arg]
        self._wandb = importlib.import_module("wandb")
        if file := options.pop("api_key_file", None):
            options["api_key"] = Path(file).expanduser().read_text("utf-8").strip()
        if key := options.pop("api_key", None):
            self._wandb.login(key=key)
        run = {"id": self.trial_id, "name": self.trial_name, "group": type(self).__name__}
        again = {"resume": True, "reinit": True, "allow_val_change": True}
        self.wandb = self._wandb.init(**{**run, **again, "config": own, **options})

    def stop(self: Any) -> None:
        """Ends the run, and the trial."""
        self.wandb.finish()
        super().stop()  # type: ignore[misc]


class WandbLogger(loggers.Logger):
    """Sends a trial's results to Weights & Biases: one of `tune.run(loggers=…)` until Ray 2.0.

    The arguments of the run are `wandb` in the config, or in its `logger_config`.
    """

    def _init(self) -> None:
        from ray.air.integrations.wandb import WandbLoggerCallback

        options = {**self.config, **(self.config.get("logger_config") or {})}.get("wandb")
        if not options:
            raise ValueError("The config has no 'wandb' with a 'project'.")
        hidden = [*options.get("excludes", ()), "wandb", "logger_config"]
        self._callback = WandbLoggerCallback(**{**options, "excludes": hidden})
        self._callback.setup()
        self._callback.log_trial_start(self.trial)

    def on_result(self, result: Mapping[str, Any]) -> None:
        """Sends one result."""
        self._callback.log_trial_result(result["training_iteration"], self.trial, dict(result))

    def close(self) -> None:
        """Ends the run, and waits until all is sent."""
        self._callback.log_trial_end(self.trial)
        self._callback.on_experiment_end([self.trial])


def _mixed_with(function: Function, mixin: type) -> Function:
    """Marks a function, or a class of trainables, for Tune."""
    marked: Any = function
    marked.__mixins__ = (*getattr(marked, "__mixins__", ()), mixin)
    return function


def mlflow_mixin(func: Function) -> Function:
    """Gives each trial of a function a run of MLflow, as `config["mlflow"]` says."""
    return _mixed_with(func, MLflowTrainableMixin)


def wandb_mixin(func: Function) -> Function:
    """Gives each trial of a function a run of Weights & Biases, as `config["wandb"]` says."""
    return _mixed_with(func, WandbTrainableMixin)


class TuneCallback:
    """The base class of callbacks for MXNet."""


class TuneReportCallback(TuneCallback):
    """Reports metrics: an `eval_end_callback`.

    Args:
        metrics: Which; a dict gives them other names; by default all.
    """

    def __init__(self, metrics: str | Sequence[str] | Mapping[str, str] | None = None) -> None:
        names = [metrics] if isinstance(metrics, str) else metrics or ()
        self._metrics = names if isinstance(names, Mapping) else {name: name for name in names}

    def __call__(self, param: Any) -> None:
        """MXNet calls it."""
        if not param.eval_metric:
            return
        values = dict(param.eval_metric.get_name_value())
        chosen = {name: values[metric] for name, metric in self._metrics.items()}
        functions.report(**chosen or values)


class TuneCheckpointCallback(TuneCallback):
    """Saves a model after some epochs: an `epoch_end_callback`, which needs MXNet's package.

    Args:
        filename: The file's name in the checkpoint.
        frequency: After how many epochs.
    """

    def __init__(self, filename: str = "checkpoint", frequency: int = 1) -> None:
        self._filename, self._frequency = filename, frequency

    def __call__(self, epoch: int, sym: object, arg: object, aux: object) -> None:
        """MXNet calls it."""
        if epoch % self._frequency:
            return
        save = importlib.import_module("mxnet.model").save_checkpoint
        with functions.checkpoint_dir(step=epoch) as folder:
            save(str(Path(folder, self._filename)), epoch, sym, arg, aux)
