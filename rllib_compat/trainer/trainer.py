"""`Trainer`: the class of Ray 0.5 – 2.0 around an `Algorithm` of the installed Ray."""

from __future__ import annotations

import contextlib
import copy
import logging
import math
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Concatenate, ParamSpec, TypeVar

import ray
from packaging.version import Version
from ray.tune import Trainable

from rllib_compat.config import Translation, era, translate
from rllib_compat.config.era import AUTO, Era
from rllib_compat.config.evidence import Evidence
from rllib_compat.formats.layouts.search import whole_of
from rllib_compat.formats.manifest import why_not_ours
from rllib_compat.formats.paths import local_path, storage_path
from rllib_compat.neutral.errors import CompatError, RayNotSupportedError
from rllib_compat.ray_versions import algorithms, env_runners, old_stack, tune
from rllib_compat.ray_versions import metrics as ray_metrics
from rllib_compat.registry import keys
from rllib_compat.registry.legacy_api import missing
from rllib_compat.runtime.envs import find_creator
from rllib_compat.runtime.policy_mapping import ONLY_POLICY
from rllib_compat.runtime.results import complete_evaluation
from rllib_compat.runtime.user_envs import with_user_api
from rllib_compat.trainer import refusals, subclasses
from rllib_compat.trainer.build import AlgorithmBuilder
from rllib_compat.trainer.checkpoints import (
    Checkpoints,
    named_as_by_code,
    pack,
    path_in_code,
    save_whole,
    unpack,
)
from rllib_compat.trainer.defaults import DefaultConfig, Origin, ReadableConfig, defaults_of, merge
from rllib_compat.trainer.inference import Inference
from rllib_compat.trainer.load import LoadedAlgorithm
from rllib_compat.trainer.policies import Policies
from rllib_compat.trainer.preparation import prepare, resource_help, resource_request
from rllib_compat.trainer.refusals import OldStackNeededError
from rllib_compat.trainer.result_files import UnifiedLogger
from rllib_compat.trainer.running import RunningAlgorithm
from rllib_compat.trainer.workers import LegacyOptimizer, LegacyWorkers, ToTrain

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm import Algorithm

    from rllib_compat.config.translator import Stack

P = ParamSpec("P")
R = TypeVar("R")

logger = logging.getLogger(__name__)

# Since this Ray, a trainer has a method for its iteration.
_STEPPING = Version("1.10")
#: From here on, evaluation workers had no local one beside remote ones.
_EVALUATING_REMOTELY = Version("1.9")
# Between these, it had an execution plan for it.
_PLANNING = Version("1.0")

# Metrics beside those of episodes, in the results of `collect_metrics`.
MEASURED = (
    "info",
    "off_policy_estimator",
    "sampler_perf",
    "num_healthy_workers",
    "timesteps_this_iter",
)


def _of(
    part: str, method: Callable[Concatenate[Any, P], R]
) -> Callable[Concatenate[Trainer, P], R]:
    """A method of a trainer that calls the same one of a part."""

    @wraps(method)
    def call(trainer: Trainer, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return method(getattr(trainer, part), *args, **kwargs)

    return call


class _Replaceable:
    """An attribute that is computed until old code sets it, which a property forbids."""

    def __init__(self, read: Callable[[Any], Any]) -> None:
        self.read = read
        self.__doc__ = read.__doc__

    def __get__(self, trainer: object, owner: object = None) -> Any:
        return self if trainer is None else self.read(trainer)


class Trainer(Trainable):  # type: ignore[misc]  # Ray has no types
    """Trains with the installed Ray, with the API of the Trainer of Ray 0.5 – 2.0.

    It owns an `Algorithm` and is not one: the methods of old Rays are defined here, and those that
    can't exist any more raise a `GoneError` that names the replacement.

    Args:
        config: The legacy config.
        env: The environment, if the config does not name it: a name, a class or a creator.
        logger_creator: Makes a logger for the config, instead of `UnifiedLogger`.
        algorithm: The algorithm's name, if neither the class nor the config's keys imply it.
        legacy_ray: The Ray that the config was written for; its defaults are kept, and the length
            of its iterations. "today": defaults, iterations and networks are those of the
            installed Ray. None: the class's value. "auto": the one that the config, the imports
            and requirement files indicate.
        api_stack: The API stack of the installed Ray that trains: "new", "old", or "auto": the new
            one, unless the config or the environment needs the old one. None: the class's value.
        replay_columns: Whether DQN and SAC replay columns instead of episodes;
            None: the class's value.
        **trainable: Arguments that Tune passes to a Trainable.

    Attributes:
        algorithm_name: The name of the algorithm that the class is for, or None.
        legacy_ray: The same, if the caller names none.
        api_stack: The API stack, if the caller names none.
        evidence: What indicates it beside the config, for the process of a trial; None: what this
            process knows.
        hooks: The functions that the class calls, by the names of `subclasses.HOOKS`.
        policy_class: The class of its policies; the old API stack trains it.
        choose_policy_class: The same, chosen by the config.
        learns_once: Whether it samples and learns once from each batch, unlike RLlib's algorithms.
        replay_columns: Whether DQN and SAC replay columns, if the caller does not say; None:
            if columns support the config.
        translation: The translated config; `translation.report` has a row for every key.
        raw_user_config: The config as it was given.
        config: The config with the defaults of its Ray.
        last_result: What the last `train()` returned; empty before.
        evaluation_metrics: The results of the last evaluation, below `evaluation`; before any, NaN.
        state: For old code to store in (Ray 0.5 – 0.8); it is not saved in checkpoints.

    Raises:
        ConfigError: The config can't be translated.
        TypeError: No Ray's Trainer took one of the arguments.
    """

    algorithm_name: ClassVar[str | None] = None
    legacy_ray: ClassVar[str] = AUTO
    api_stack: ClassVar[Stack] = "auto"
    evidence: ClassVar[tuple[Evidence, ...] | None] = None
    _default_config: ClassVar[Any] = subclasses.AllDefaults()
    hooks: ClassVar[Mapping[str, Callable[..., Any]]] = {}
    policy_class: ClassVar[type | None] = None
    choose_policy_class: ClassVar[Any] = None
    learns_once = False
    replay_columns: bool | None = None
    translation: Translation
    config: dict[str, Any]
    #: A loaded algorithm, in classes for a single trainer.
    _loaded: ClassVar[LoadedAlgorithm | None] = None

    merge_trainer_configs = staticmethod(merge)
    merge_algorithm_configs = merge_trainer_configs

    def __init__(
        self,
        config: Mapping[str, Any] | None = None,
        env: str | type | Callable[..., Any] | None = None,
        logger_creator: Callable[[dict[str, Any]], Any] | None = None,
        *,
        algorithm: str | None = None,
        legacy_ray: str | None = None,
        api_stack: Stack | None = None,
        replay_columns: bool | None = None,
        **trainable: object,
    ) -> None:
        subclasses.check_subclass(type(self), Trainer)
        of_trainable = tune.trainable_arguments(trainable)
        given = dict(config or {})
        if env is not None:
            given["env"] = env
        self._legacy_ray = legacy_ray or self.legacy_ray
        stack = api_stack or self.api_stack
        self._origin = Origin(algorithm or self.algorithm_name, None, stack)
        if replay_columns is not None:
            self.replay_columns = replay_columns
        began = time.time()
        self.last_result: dict[str, Any] = {}
        unknown = dict.fromkeys(("max", "min", "mean"), math.nan)
        rewards = {f"episode_reward_{name}": value for name, value in unknown.items()}
        self.evaluation_metrics: dict[str, Any] = {"evaluation": rewards}
        self.state: dict[str, Any] = {}
        self._logger = logger_creator(given) if logger_creator else None
        if not ray.is_initialized():
            ray.init(ignore_reinit_error=True)
        super().__init__(given, **of_trainable)
        self._warmup_time = time.time() - began
        # Tune has its own loggers.
        if self._logger is None and not tune.has_storage(self):
            self._logger = UnifiedLogger(self.config, self.logdir)

    def setup(self, config: dict[str, Any]) -> None:
        """Translates the config and builds the algorithm."""
        self.raw_user_config = config
        if self._loaded is not None:
            self._take(self._loaded)
            return
        builder = self._prepare(config)
        self.call_hook("before_init")
        try:
            algorithm = builder.build()
        except OldStackNeededError as error:
            logger.warning("%s The old API stack trains it.", error)
            self._origin = replace(self._origin, api_stack="old")
            builder = self._prepare(config)
            algorithm = builder.build()
        self._own(algorithm, builder)
        self._running.start()
        if (legacy_ray := self._origin.legacy_ray) is not None:
            self.config = ReadableConfig(keys.with_placeholders(self.config, legacy_ray))

    def _prepare(self, config: dict[str, Any]) -> AlgorithmBuilder:
        builder = prepare(self, config, self._legacy_ray, self._origin, self.logdir)
        self._origin, self.learns_once = builder.origin, builder.learns_once
        self.translation = builder.translation
        self.translation.report.warn(logger)
        self.config = ReadableConfig(builder.config)
        return builder

    def _take(self, loaded: LoadedAlgorithm) -> None:
        self._origin = Origin(loaded.name, self._origin.ray)
        self.config = ReadableConfig(loaded.legacy_config)
        self.translation = translate(
            self.raw_user_config, algorithm=loaded.name, legacy_ray=Era(None)
        )
        builder = AlgorithmBuilder(
            translation=self.translation,
            origin=self._origin,
            config=self.config,
            given=dict(self.raw_user_config),
            trainer=type(self),
            learns_once=self.learns_once,
            replay_columns=self.replay_columns,
            logdir=self.logdir,
        )
        self._own(loaded.algorithm, builder)
        ray_metrics.mark_steps_as_counted(loaded.algorithm)
        self._adopt()
        if loaded.mapping is not None or loaded.to_train is not None:
            self._policies.update_workers(loaded.mapping, loaded.to_train)

    def _own(self, algorithm: Algorithm, builder: AlgorithmBuilder) -> None:
        """Makes the parts around an algorithm."""
        legacy = self.translation.legacy_config
        frozen = legacy.get("multiagent", {}).get("policy_map_capacity")
        if frozen is None:
            frozen = legacy.get("policy_map_capacity")
        self._running = RunningAlgorithm(algorithm, started=self._started, frozen=frozen)
        self._inference = Inference(self._running)
        self._policies = Policies(self._running, builder, self.config)
        self._checkpoints = Checkpoints(self._running, builder)

    def _started(self) -> None:
        """Is called after each start of an algorithm: that of the config, or that of a restore."""
        self._adopt()
        subclasses.start_steps(self)
        self.call_hook("after_init")

    def _adopt(self) -> None:
        with contextlib.suppress(RayNotSupportedError):  # there may be no worker
            self.workers.local_worker()  # callbacks in it get policies that have critics, and learn
        for callbacks in self._running.adapters:
            callbacks.set_trainer(self)

    @property
    def algorithm(self) -> Algorithm:
        """The `Algorithm` that does the work."""
        return self._running.algorithm

    # Training

    def step(self) -> dict[str, Any]:
        """One iteration; `train()` calls it."""
        self.call_hook("before_train_step")
        try:
            result: dict[str, Any] = self.algorithm.train()
        except (ValueError, RuntimeError) as error:
            if (why := refusals.failure_of(error)) is not None:
                raise why from error
            raise
        self._running.mark_weights_stale()
        self.call_hook("after_optimizer_step", result.get("info", {}).get("learner", {}))
        self.call_hook("after_train_result", result)
        self.last_result = result
        if "evaluation" in result:
            self.evaluation_metrics = {"evaluation": result["evaluation"]}
        return result

    step_attempt = step

    def train(self) -> dict[str, Any]:
        """Trains once.

        Returns:
            The result, which is `last_result` from now on.
        """
        self.last_result = super().train()
        return self.last_result

    def get_auto_filled_metrics(self, *args: object, **kwargs: object) -> dict[str, Any]:
        """Tune's own keys of a result, with three keys of Ray 0.5 – 2.6."""
        metrics = dict(super().get_auto_filled_metrics(*args, **kwargs))
        config = metrics.get("config", {})
        if config.get("evaluation_interval"):
            evaluation = merge(config, config.get("evaluation_config") or {})
            config = {**config, "evaluation_config": evaluation}
        return {
            "timesteps_since_restore": 0,
            **metrics,
            "config": dict(config),
            "experiment_id": Path(self.logdir).name,
            "warmup_time": self._warmup_time,
        }

    def training_step(self) -> dict[str, Any]:
        """The steps of an iteration: the algorithm's own."""
        return dict(old_stack.own_step(self.algorithm))

    @property
    def training_iteration(self) -> Any:
        """The number of iterations, until Ray 1.9; then `training_step` by its first name."""
        ray = self._origin.legacy_ray
        return self.training_step if ray is None or Version(ray) >= _STEPPING else self.iteration

    @property
    def _counters(self) -> Any:
        return old_stack.counters_of(self.algorithm)

    @property
    def _timers(self) -> Any:
        return old_stack.timers_of(self.algorithm)

    def evaluate(self) -> dict[str, Any]:
        """Evaluates the policies now.

        Returns:
            The old and the new keys, below `evaluation`.
        """
        metrics = complete_evaluation(self.algorithm.evaluate(), self.algorithm.config)
        for callbacks in self._running.adapters:
            callbacks.evaluated = False  # results of `train` have none of this one
        self.evaluation_metrics = {"evaluation": metrics}
        return self.evaluation_metrics

    @property
    def attached_evaluation(self) -> dict[str, Any]:
        """What a result without an evaluation has of the latest one, as the config says."""
        attach = self.config.get("always_attach_evaluation_results")
        return copy.deepcopy(self.evaluation_metrics) if attach is True else {}

    def collect_metrics(self, *_: object, **__: object) -> dict[str, Any]:
        """The episodes of the smoothing window, by the legacy keys; workers can't be chosen."""
        config = self.algorithm.config
        last = {key: self.last_result[key] for key in MEASURED if key in self.last_result}
        adapters = self._running.adapters
        return {**last, **next((adapter.results.summary(config) for adapter in adapters), {})}

    def log_result(self, result: dict[str, Any]) -> None:
        """Logs a result, outside of Tune into `logdir`."""
        super().log_result(result)
        if self._logger is not None:
            self._logger.on_result(result)

    _log_result = log_result

    def try_recover_from_step_attempt(self) -> None:
        """Gives workers that Ray has replaced the weights and the state of the others."""
        for workers in (self.workers, self.evaluation_workers):
            if workers is not None:
                workers.recreate_failed_workers()

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        """Continues with another config; what was learned is lost until a restore.

        Returns:
            True: Tune may use this actor again.
        """
        algorithms.stop_algorithm(self.algorithm)
        self.setup(copy.deepcopy(new_config))
        return True

    def cleanup(self) -> None:
        """Stops the algorithm; `stop()` calls it."""
        algorithms.stop_algorithm(self.algorithm)
        getattr(self._logger, "close", lambda: None)()

    # Attributes

    @property
    def iteration(self) -> int:
        """How many times `train()` was called."""
        return int(self.algorithm.iteration)

    @property
    def logdir(self) -> str:
        """The folder of this trainer's files: results and, by default, checkpoints."""
        return str(getattr(self._logger, "logdir", None) or tune.folder_of(self))

    @property
    def callbacks(self) -> Any:
        """The user's callbacks object in this process."""
        return self._policies.callbacks()

    @property
    def env_creator(self) -> Callable[..., Any] | None:
        """The function that makes the user's environment, without wrappers, from an env context."""
        if self._loaded is not None:
            return find_creator(self.algorithm.config.env)
        creator = find_creator(self.translation.env_settings.env)
        return creator and (lambda context: with_user_api(creator(context)))

    @property
    def workers(self) -> LegacyWorkers:
        """All workers; those that evaluate, if an algorithm only learns from recordings.

        Raises:
            RayNotSupportedError: There are none: Ray 2.41 – 2.47 make none for such an algorithm.
        """
        return LegacyWorkers(self._running, self._running.group, self.config, self._policies)

    @property
    def evaluation_workers(self) -> LegacyWorkers | None:
        """All workers that evaluate, if the config asks for any."""
        if (group := self.algorithm.eval_env_runner_group) is None:
            return None
        ray = self._origin.legacy_ray
        local = ray is not None and Version(ray) < _EVALUATING_REMOTELY
        return LegacyWorkers(self._running, group, self.config, local=local)

    @property
    def local_evaluator(self) -> Any:
        """The worker in this process, by its name of Ray 0.5 and 0.6."""
        return self.workers.local_worker()

    @property
    def remote_evaluators(self) -> list[Any]:
        """The actors of the other workers, by their name of Ray 0.5 and 0.6."""
        return self.workers.remote_workers()

    @_Replaceable
    def optimizer(self) -> LegacyOptimizer:
        """Workers and counters, under their name in Ray 0.5 – 0.8."""
        return LegacyOptimizer(
            self.workers, self._running, lambda: self.last_result, self.collect_metrics
        )

    @_Replaceable
    def local_replay_buffer(self) -> Any:
        """The replay buffer, or None."""
        return getattr(self.algorithm, "local_replay_buffer", None)

    @property
    def learner_group(self) -> Any:
        """The learners."""
        return self.algorithm.learner_group

    @property
    def global_vars(self) -> dict[str, Any]:
        """The progress that Ray 0.6 – 0.8 sent to all workers."""
        return {"timestep": self.optimizer.num_steps_sampled}

    @property
    def remote_requests_in_flight(self) -> dict[int, set[Any]]:
        """The pending calls of workers, by their indices."""
        return env_runners.requests_in_flight(self._running.group)

    @_Replaceable
    def train_exec_impl(self) -> Any:
        """The execution plan that runs, if the class has one.

        In Ray 1.0 – 1.9, each trainer had one: an iterator, whose next item is an iteration's
        result.
        """
        ray = self._origin.legacy_ray
        plan = getattr(self.algorithm, "legacy_step", None)
        if plan is not None or ray is None or not _PLANNING <= Version(ray) < _STEPPING:
            return plan
        optimizer = self.optimizer
        return old_stack.plan_iterator(
            lambda: iter(self.step, None),
            num_steps_sampled=optimizer.num_steps_sampled,
            num_steps_trained=optimizer.num_steps_trained,
        )

    @property
    def evaluation_config(self) -> Any:
        """The config of the evaluation."""
        return self.algorithm.evaluation_config

    @property
    def reward_estimators(self) -> dict[str, Any]:
        """The off-policy estimators, by name."""
        return dict(getattr(self.algorithm, "reward_estimators", None) or {})

    def add_module(self, *args: object, **kwargs: object) -> Any:
        """Adds a module, as `Algorithm.add_module` does."""
        return self.algorithm.add_module(*args, **kwargs)

    def get_module(self, module_id: str = ONLY_POLICY) -> Any:
        """The module of a policy, or None."""
        return self.algorithm.get_module(module_id)

    @property
    def trial_resources(self) -> Any:
        """The resources that Tune has reserved for the trial; "default" outside of Tune."""
        return super().trial_resources or "default"

    def get_current_ip(self) -> str:
        """The address of this machine."""
        return str(ray.util.get_node_ip_address())

    current_ip = get_current_ip

    def get_current_ip_pid(self) -> tuple[str, int]:
        """The address of this machine, and the process."""
        return self.get_current_ip(), os.getpid()

    compute_single_action = _of("_inference", Inference.compute_single_action)
    compute_action = compute_single_action
    compute_actions = _of("_inference", Inference.compute_actions)

    get_policy = _of("_policies", Policies.get_policy)
    get_weights = _of("_policies", Policies.get_weights)
    set_weights = _of("_policies", Policies.set_weights)
    add_policy = _of("_policies", Policies.add_policy)
    remove_policy = _of("_policies", Policies.remove_policy)

    export_policy_model = _of("_policies", Policies.export_policy_model)
    export_policy_checkpoint = _of("_policies", Policies.export_policy_checkpoint)
    import_policy_model_from_h5 = _of("_policies", Policies.import_policy_model_from_h5)
    import_model = import_policy_model_from_h5

    def export_model(
        self, export_formats: str | Sequence[str], export_dir: str | None = None
    ) -> dict[str, str]:
        """Exports the only policy; Tune's `export_formats` calls it.

        Args:
            export_formats: "model", "checkpoint", "onnx", or several. The opset of ONNX is that of
                the environment variable ONNX_OPSET, else 11.
            export_dir: The folder to write into, by default the trial's.

        Returns:
            The folder of each format.

        Raises:
            CompatError: A format is none of these.
        """
        exporters: dict[str, Callable[..., str]] = {
            "model": self.export_policy_model,
            "checkpoint": self.export_policy_checkpoint,
            "onnx": partial(self.export_policy_model, onnx=int(os.getenv("ONNX_OPSET", "11"))),
        }
        formats = [export_formats] if isinstance(export_formats, str) else list(export_formats)
        if unknown := [name for name in formats if name not in exporters]:
            raise CompatError(
                f"Nothing is exported as {', '.join(map(repr, unknown))} any more.",
                where="export_formats",
                fix=f"the formats are {', '.join(map(repr, exporters))}",
            )
        filesystem, trial = tune.trial_storage(self) or (None, self.logdir)
        folder = local_path(export_dir or (trial if filesystem is None else self.logdir))
        folders = {name: str(folder / name) for name in formats}
        for name, place in folders.items():
            exporters[name](place)
        return folders

    # Checkpoints

    #: The place that Ray 1.x – 2.6 copied checkpoints to; the storage of a trial does it now.
    remote_checkpoint_dir = storage_client = sync_function_tpl = None
    uses_cloud_checkpointing = False

    def delete_checkpoint(self, checkpoint_path: str) -> None:
        """Deletes a checkpoint: its folder.

        Raises:
            CompatError: The folder contains files that no trainer has saved.
        """
        checkpoint_path = str(whole_of(local_path(checkpoint_path)))
        if why := why_not_ours(Path(checkpoint_path)):
            raise CompatError(
                f"It is not deleted: {why}.",
                where=str(checkpoint_path),
                fix="Remove it yourself, if nothing in it is needed.",
            )
        shutil.rmtree(checkpoint_path, ignore_errors=True)

    def get_state(self) -> dict[str, Any]:
        """Weights by policy, and counters."""
        return {
            "worker": {"weights": self.get_weights()},
            "experiment_id": Path(self.logdir).name,
            "ray_version": ray.__version__,
            "iteration": self.iteration,
            "episodes_total": self.last_result.get("episodes_total"),
            "time_total": self.last_result.get("time_total_s", 0.0),
            "timesteps_total": self.optimizer.num_steps_sampled,
            "last_result": self.last_result,
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Sets the weights of what `get_state` returned; `restore` restores all."""
        self.set_weights(state["worker"]["weights"])

    def __getstate__(self) -> dict[str, Any]:
        """The local worker's state as bytes, and the counters under the names of each old Ray."""
        counted = self.optimizer
        names = ("num_steps_sampled", "num_steps_trained")
        return {
            "worker": self.workers.local_worker().save(),
            "optimizer": counted.save(),
            "trainer_state": dict(self.state),
            "train_exec_impl": {
                "counters": {name: getattr(counted, name) for name in names},
                "info": {"learner": self.last_result.get("info", {}).get("learner", {})},
                "timers": None,
            },
        }

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Sets the weights of what `__getstate__` returned, and `state`."""
        self.state = dict(state.get("trainer_state", {}))
        trained = state["worker"]
        self.workers.local_worker().restore(trained)

    def save(self, checkpoint_dir: str | None = None) -> Any:
        """Saves a checkpoint: its folder is complete, or is not there at all.

        `save_checkpoint` and the callbacks get the folder while it still has another name.

        Returns:
            Its folder, with the attributes `checkpoint` and `metrics` of Ray 2.7, too; for code of
            Ray 1.13 and before a file in it, as these Rays did; in a trial, what Tune expects.
        """
        if tune.has_storage(self):
            if era.is_code_until("2.6.3", self._legacy_ray, self.evidence):
                tune.number_by_iteration(self, self.iteration)
            return super().save(checkpoint_dir)
        folder = storage_path(checkpoint_dir or self.logdir).rstrip("/")
        place = f"{folder}/checkpoint_{self.iteration:06d}"
        save_whole(place, self.save_checkpoint)
        return named_as_by_code(place, self.last_result)

    def save_checkpoint(self, checkpoint_dir: str) -> Any:
        """Writes a checkpoint of the installed Ray, which `Algorithm.from_checkpoint` loads, too.

        Returns:
            The folder.
        """
        self._checkpoints.write(checkpoint_dir)
        if self.state:
            logger.warning("`trainer.state` is not in the checkpoint: %s.", sorted(self.state))
        return checkpoint_dir

    def save_to_object(self) -> bytes:
        """A checkpoint as bytes."""
        return pack(self.save_checkpoint)

    def restore(self, checkpoint_path: Any, *, trusted: bool = False) -> None:
        """Restores a checkpoint: of this class, of Ray's own `Algorithm`, or of an old Ray.

        It is read without running anything that is in it, whoever wrote it, and Ray gets the data.

        Args:
            checkpoint_path: Its path, or Tune's object for it.
            trusted: Whether Ray may load the files themselves, which runs code in them. For your
                own checkpoints that contain more than data.

        Raises:
            CheckpointError: It contains something that only Ray could load, is damaged, or is
                incomplete. The trainer is as it was.
        """
        if isinstance(checkpoint_path, (str, Path)):
            self.load_checkpoint(str(checkpoint_path), trusted=trusted)
            return
        metrics = getattr(checkpoint_path, "metrics", None) or {}
        with getattr(checkpoint_path, "checkpoint", checkpoint_path).as_directory() as folder:
            self.load_checkpoint(folder, trusted=trusted)
        tune.mark_restored_by_tune(self, time_total=metrics.get("time_total_s", 0.0))

    def restore_from_object(self, obj: bytes) -> None:
        """Restores what `save_to_object` returned."""
        with tempfile.TemporaryDirectory() as folder:
            unpack(obj, folder)
            self.load_checkpoint(folder)

    def load_checkpoint(self, checkpoint_dir: str, *, trusted: bool = False) -> None:
        """Loads what `save_checkpoint` wrote, or a legacy checkpoint after its conversion.

        As in old Rays, the trainer keeps its config, whatever the checkpoint has.

        Args:
            checkpoint_dir: Its path.
            trusted: See `restore`.
        """
        self._checkpoints.load(checkpoint_dir, trusted=trusted)
        tune.mark_restored(self, iteration=self.iteration)

    @classmethod
    def from_checkpoint(
        cls,
        path: Any,
        policy_ids: Collection[str] | None = None,
        policy_mapping_fn: Callable[..., str] | None = None,
        policies_to_train: ToTrain = None,
    ) -> Trainer:
        """A trainer that continues from a checkpoint (Ray 2.1 – 2.9).

        A checkpoint of the installed Ray brings its config and environment along, and Ray unpickles
        them; one of an old Ray is converted, and nothing in it is run.

        Args:
            path: The checkpoint: its path, or Tune's object for it.
            policy_ids: Which policies to take; None for all.
            policy_mapping_fn: Which policy an agent has; None keeps the mapping.
            policies_to_train: Which policies learn; None keeps them.
        """
        if not isinstance(path, (str, Path)):
            with getattr(path, "checkpoint", path).as_directory() as folder:
                return cls.from_checkpoint(folder, policy_ids, policy_mapping_fn, policies_to_train)
        loaded = LoadedAlgorithm.from_checkpoint(
            path_in_code(path), policy_mapping_fn, policies_to_train
        )
        trainer = cls.around(loaded)
        if policy_ids is not None:
            for policy in set(trainer.workers.local_worker().policy_map) - set(policy_ids):
                trainer.remove_policy(policy)
        return trainer

    @classmethod
    def around(cls, loaded: LoadedAlgorithm) -> Trainer:
        """A trainer that continues with a loaded algorithm."""
        members = {"_loaded": loaded, "__module__": cls.__module__}
        made: type[Trainer] = type(cls.__name__, (cls,), members)
        trainer = made()
        tune.mark_restored(trainer, iteration=loaded.algorithm.iteration)
        return trainer

    # Methods for subclasses to override

    @classmethod
    def get_default_config(cls) -> dict[str, Any]:
        """The default config of the legacy class."""
        algorithm = cls.algorithm_name or "PPO"
        added = subclasses.added_defaults(cls)
        return DefaultConfig(algorithm, merge(defaults_of(algorithm), added))

    def get_default_policy_class(self, config: dict[str, Any]) -> type | None:
        """The class of policies that name none; None for the algorithm's own."""
        chosen = self.choose_policy_class(config) if self.choose_policy_class else None
        return chosen or self.policy_class

    def validate_config(self, config: dict[str, Any]) -> None:
        """Checks a config with all defaults, and may change it."""

    @staticmethod
    def validate_env(env: object, env_context: object) -> None:
        """Checks an environment; subclasses may override it."""

    def validate_framework(self, config: dict[str, Any]) -> None:
        """Does nothing: the framework is torch, whatever the config says."""

    @classmethod
    def execution_plan(cls, *_: object, **__: object) -> Any:
        """The steps of a custom class, which replace its algorithm's.

        It is called with the workers and the config, and returns an iterator over results.

        Raises:
            GoneError: It is the algorithm's own, which can be given to other classes, not called.
        """
        subclasses.StockPlan(cls.algorithm_name or cls.__name__)()

    @classmethod
    def with_updates(cls, **overrides: Any) -> type[Trainer]:
        """Makes a class with other defaults and hooks, as `build_trainer` classes could.

        Args:
            **overrides: What `rllib_compat.trainer.subclasses.derive` takes.

        Raises:
            GoneError: An argument belongs to the old architecture.
        """
        return subclasses.derive(cls, **overrides)

    @classmethod
    def default_resource_request(cls, config: Mapping[str, Any]) -> Any:
        """The resources that Tune reserves for a trial.

        Returns:
            Bundles; their `to_json()` is the form of `resources_per_trial` until Ray 1.x.
        """
        return resource_request(cls, config)

    @classmethod
    def resource_help(cls, config: Mapping[str, Any]) -> str:
        """The text that Tune shows if there are too few resources."""
        return resource_help(cls, config)

    def __repr__(self) -> str:
        return type(self).__name__

    def __getattr__(self, name: str) -> Any:
        raise missing(self, "trainer", name)

    def call_hook(self, name: str, *arguments: object) -> None:
        """Calls a hook of the class (`subclasses.HOOKS`), if it has it.

        RLlib's own functions are part of its algorithms, which call them themselves.
        """
        hook = self.hooks.get(name)
        if hook is not None and (self.learns_once or not subclasses.is_rllibs_own(hook)):
            hook(self, *arguments)
