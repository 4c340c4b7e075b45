"""`Trainer`: the class of Ray 0.5 – 2.0 around today's `Algorithm`."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import ray
from ray.rllib.env.env_context import EnvContext
from ray.tune import Trainable

from rllib_compat import registry
from rllib_compat.config import Translation, find_algorithm, translate
from rllib_compat.neutral import spaces
from rllib_compat.neutral.errors import GoneError
from rllib_compat.neutral.report import Verdict
from rllib_compat.ray_versions import (
    algorithms,
    checkpoints,
    configs,
    env_runners,
    episodes,
    metrics,
    tune,
)
from rllib_compat.registry.keys import TODAY
from rllib_compat.runtime.adapted_config import limit_overrides_cache
from rllib_compat.runtime.callbacks import CallbackAdapter, adapt_callbacks, with_trainer
from rllib_compat.runtime.connectors import add_preprocessors
from rllib_compat.runtime.default_policy import with_default_policy
from rllib_compat.runtime.env_runners import give_env_runners
from rllib_compat.runtime.envs import find_creator, make_env, resolve_env_name
from rllib_compat.runtime.learners import report_as_before
from rllib_compat.runtime.placeholders import placeholder_env
from rllib_compat.runtime.results import complete_evaluation
from rllib_compat.runtime.user_envs import with_user_api
from rllib_compat.trainer import coefficients, old_stack, overridable, templates
from rllib_compat.trainer.acting import Acting
from rllib_compat.trainer.checkpoints import Checkpoints
from rllib_compat.trainer.defaults import common_config, defaults_of, merge
from rllib_compat.trainer.divergence import diverged
from rllib_compat.trainer.exports import Exports
from rllib_compat.trainer.loaded import Loading
from rllib_compat.trainer.new_networks import are_old, require_actions
from rllib_compat.trainer.optimizer import LegacyOptimizer
from rllib_compat.trainer.overridable import Overridable
from rllib_compat.trainer.policies import Policies
from rllib_compat.trainer.resources import TrialResources
from rllib_compat.trainer.result_files import UnifiedLogger

logger = logging.getLogger(__name__)

# The keys that ask for new workers in the place of those that fail.
RESTARTING = (
    "recreate_failed_workers",
    "recreate_failed_env_runners",
    "restart_failed_env_runners",
)
# The keys that say how much a trial takes.
RESOURCES = (
    "num_workers",
    "num_cpus_per_worker",
    "num_gpus_per_worker",
    "num_cpus_for_driver",
    "num_gpus",
)
GONE = {
    "train_exec_impl": "override Algorithm.training_step",
    "state": "keep it in the callbacks object",
    "import_model": "load the weights yourself and call trainer.set_weights()",
    "import_policy_model_from_h5": "load the weights yourself and call trainer.set_weights()",
}


class Trainer(Overridable, Policies, Acting, Exports, Checkpoints, Loading, Trainable):  # type: ignore[misc]  # Ray has no types
    """Trains with the installed Ray, and looks like the Trainer of Ray 0.5 – 2.0.

    It owns an `Algorithm` and is none: what legacy code may ask is written out here, and what can't
    exist any more raises `GoneError` with where it went.

    Args:
        config: The legacy config.
        env: The environment, if the config does not name it: a name, a class or a creator.
        logger_creator: Makes a logger for the config, in the place of `UnifiedLogger`.
        algorithm: The algorithm's name, if neither the class nor the config's keys tell it.
        legacy_ray: The Ray that the config was written for; its defaults are then kept, and what
            an iteration was in it. "today": nothing of that, and networks are today's. None: an
            iteration is that of the newest Ray that had all keys of the config.
        replay_columns: Whether DQN and SAC replay columns in the place of episodes;
            None: as the class says.
        **trainable: What Tune passes on to a Trainable.

    Attributes:
        algorithm_name: The name of the algorithm that the class is for, or None.
        legacy_ray: The Ray whose defaults the class keeps, where the caller names none.
        hooks: What the class calls at the moments that `templates.HOOKS` names.
        policy_class: The class of its policies; the old API stack trains it.
        choose_policy_class: The same, chosen by the config.
        learns_once: Whether it samples and learns once from each batch, as no algorithm does.
        replay_columns: Whether DQN and SAC replay columns, where the caller does not say; None:
            where columns can do what the config asks for.
        execution_plan: What it does in the place of its algorithm's steps, from (workers, config).
        algorithm: The `Algorithm` that does the work.
        translation: How the config was translated; `translation.report` has a line for every key.
        raw_user_config: The config as it was given.
        config: The config with the defaults of its Ray.
        last_result: What the last `train()` returned; empty before.

    Raises:
        ConfigError: The config can't be translated.
    """

    algorithm_name: ClassVar[str | None] = None
    legacy_ray: ClassVar[str | None] = None
    _default_config: ClassVar[Mapping[str, Any]] = {}
    hooks: ClassVar[Mapping[str, Callable[..., Any]]] = {}
    policy_class: ClassVar[type | None] = None
    choose_policy_class: ClassVar[Callable[[dict[str, Any]], type | None] | None] = None
    learns_once = False
    replay_columns: bool | None = None
    execution_plan: ClassVar[Callable[..., Any] | None] = None

    merge_trainer_configs = staticmethod(merge)

    def __init__(
        self,
        config: Mapping[str, Any] | None = None,
        env: Any = None,
        logger_creator: Callable[[dict[str, Any]], Any] | None = None,
        *,
        algorithm: str | None = None,
        legacy_ray: str | None = None,
        replay_columns: bool | None = None,
        **trainable: Any,
    ) -> None:
        templates.check_subclass(type(self), Trainer)
        given = dict(config or {})
        if env is not None:
            given["env"] = env
        self._networks_of = legacy_ray or self.legacy_ray
        self._asked: dict[str, Any] = {
            "algorithm": algorithm or self.algorithm_name,
            "legacy_ray": None if self._networks_of == TODAY else self._networks_of,
            "old_networks": self._networks_of != TODAY,
        }
        if replay_columns is not None:
            self.replay_columns = replay_columns
        self.last_result: dict[str, Any] = {}
        self._local_is_stale = False
        self._logger = logger_creator(given) if logger_creator else None
        if not ray.is_initialized():
            ray.init(ignore_reinit_error=True)
        super().__init__(given, **tune.trainable_arguments(trainable))
        if self._logger is None and not tune.has_storage(self):  # Tune has loggers of its own
            self._logger = UnifiedLogger(self.config, self.logdir)

    def setup(self, config: dict[str, Any]) -> None:
        """Translates the config and builds the algorithm."""
        self.raw_user_config = config
        started = templates.own_defaults(type(self))
        given = with_default_policy(merge(started, config))
        if given.get("output") == "logdir":
            given["output"] = self.logdir
        algorithm, how = find_algorithm(given, self._asked["algorithm"])
        if how == "assumed" and overridable.has_overrides(type(self)):
            self.learns_once = True
            given = {**overridable.PLAIN, **given}
        of_none = self.learns_once and not self.algorithm_name
        defaults = common_config() if of_none else defaults_of(algorithm, self._asked["legacy_ray"])
        for check in templates.checks(self):
            given = templates.validated(check, defaults, given)
        self._own_policy = templates.own_policy(self, merge(defaults, given))
        asked, own = dict(self._asked), templates.own_keys(type(self), given)
        given = {key: value for key, value in given.items() if key not in own}
        if self._own_policy is not None or overridable.has_steps(type(self)):
            asked["api_stack"] = "old"
        self.translation: Translation = translate(given, **asked)
        self._note_env_name()
        self.translation.report.warn(logger)
        self.config = merge(defaults, self.translation.legacy_config | own)
        self._call_hook("before_init")
        self.algorithm = self._built()
        self._begin()

    def _begin(self) -> None:
        """Makes an algorithm that was just built this trainer's."""
        checkpoints.keep_optimizers_through_restores(self.algorithm)
        metrics.start_counting(self.algorithm)
        env_runners.wait_for_samples(self.algorithm)
        self.share_frozen_policies()
        for callbacks in self._adapters():
            callbacks.adopt(self)
        overridable.start_steps(self)
        self._call_hook("after_init")

    def build_anew(self, config: Any) -> None:
        """Goes on with an algorithm of another config; what was learned is lost until a restore.

        If it can't be built, the trainer goes on with the one that it has.

        Args:
            config: Its `AlgorithmConfig`, a changed copy of that of `algorithm`.
        """
        before, state = self.algorithm.config, self.algorithm.get_state()
        held = coefficients.of(self.algorithm)
        algorithms.stop_algorithm(self.algorithm)  # it may hold the CPUs that the next one needs
        try:
            self.algorithm = algorithms.build_algorithm(config)
        except Exception:
            self.algorithm = algorithms.build_algorithm(before)
            self.algorithm.set_state(state)
            coefficients.take(self.algorithm, held)
            raise
        finally:
            self._begin()

    def _built(self) -> Any:
        config = self.translation.algorithm_config.copy(copy_frozen=False)
        overridable.apply(config, type(self), self._own_policy, plain=self.learns_once)
        # Also without callbacks, the adapter completes the result.
        given = config.callbacks_class
        adapter = given if _adapts(given) else adapt_callbacks(given)
        config.callbacks(with_trainer(adapter, cuts_end=self.translation.cuts_end))
        # Until Ray 2.40, the first error in an environment or a callback reached the user.
        restart = any(self.translation.legacy_config.get(key) for key in RESTARTING)
        config.fault_tolerance(restart_failed_env_runners=restart)
        if config.enable_env_runner_and_connector_v2:
            add_preprocessors(config)
            if config.env is None:
                self._stand_in(config)
            configs.keep_env_runners(config, config.observation_space, config.action_space)
        give_env_runners(config)
        limit_overrides_cache(config)
        tune.without_logger(config, self.logdir)
        self.name_networks(config)
        if config.enable_rl_module_and_learner:
            report_as_before(config)
            if (legacy := self.translation.legacy_training) is not None:
                from rllib_compat.algorithms.legacy_learners import (
                    use_legacy_learners,  # it needs torch
                )

                use_legacy_learners(config, legacy)
        if self.replay_columns is not False:
            from rllib_compat.algorithms.dqn import may_replay_columns, replay_columns

            if self.replay_columns or may_replay_columns(config):
                replay_columns(config)
        try:
            algorithm = algorithms.build_algorithm(config)
        except Exception as error:
            # An error in a remote environment comes out as another one, and in the log only.
            if self.config.get("env") is not None:
                context = EnvContext(self.config.get("env_config") or {}, 0)
                env = make_env(self.translation.env_settings, context)
                if self.translation.api_stack == "old":
                    old_stack.require(self.config, [getattr(env, "action_space", None)])
            if (why := old_stack.refused(error, self.translation)) is not None:
                raise why from error
            raise
        if self.translation.api_stack == "old":
            policies = algorithm.env_runner.policy_map.values()
            old_stack.require(self.config, [policy.action_space for policy in policies])
        else:
            require_actions(algorithm)
        return algorithm

    def name_networks(self, config: Any, more: Mapping[str, Any] | None = None) -> None:
        """Lets the modules of a config be those that the trainer's networks are, in place.

        Args:
            config: A translated config.
            more: What its legacy config says beside that of this trainer.
        """
        from rllib_compat.algorithms import catalogs  # it needs torch

        ray = self._asked["legacy_ray"]
        legacy = self.config if ray is not None else self.translation.legacy_config
        legacy = merge(legacy, more or {})
        if not are_old(self.translation, legacy, self._networks_of):
            catalogs.set_catalogs(config)
            return
        algorithm = self.translation.legacy_algorithm
        catalogs.use_legacy_networks(config, legacy, algorithm=algorithm, legacy_ray=ray)

    def _stand_in(self, config: Any) -> None:
        """Gives a config that learns from recordings alone an environment of their spaces.

        Env runners act, and hold weights, without a step in it.
        """
        both = config.observation_space, config.action_space
        if registry.of(self.translation.algorithm).offline and None not in both:
            seen, acts = (spaces.from_object(space) for space in both)
            if seen is not None and acts is not None:
                env, env_config = placeholder_env(None, seen, acts, config.env_config)
                config.environment(env, env_config=env_config, disable_env_checking=True)

    # Training

    def step(self) -> dict[str, Any]:
        """One iteration; `train()` calls it."""
        self._call_hook("before_train_step")
        try:
            result: dict[str, Any] = self.algorithm.train()
        except (ValueError, RuntimeError) as error:
            if (why := diverged(error)) is not None:
                raise why from error
            raise
        self._local_is_stale = True
        self._call_hook("after_train_result", result)
        self.last_result = result
        return result

    def log_result(self, result: dict[str, Any]) -> None:
        """Logs a result, outside of Tune into `logdir`."""
        super().log_result(result)
        if self._logger is not None:
            self._logger.on_result(result)

    _log_result = log_result

    @property
    def iteration(self) -> int:
        """How many times `train()` was called."""
        return int(self.algorithm.iteration)

    @property
    def logdir(self) -> str:
        """Where files of this trainer go: results and, unless told otherwise, checkpoints."""
        return str(getattr(self._logger, "logdir", None) or tune.folder_of(self))

    @property
    def callbacks(self) -> Any:
        """The user's callbacks object in this process."""
        return next((a.legacy[0] for a in self._adapters() if a.legacy), None)

    @property
    def optimizer(self) -> LegacyOptimizer:
        """Workers and counters, where Ray 0.5 – 0.8 had them."""
        return LegacyOptimizer(self)

    @property
    def env_creator(self) -> Callable[..., Any] | None:
        """What makes the user's environment, without any wrapper, from an env context."""
        creator = find_creator(self.translation.env_settings.env)
        return creator and (lambda context: with_user_api(creator(context)))

    def evaluate(self) -> dict[str, Any]:
        """Evaluates the policies now.

        Returns:
            Legacy and today's keys, below `evaluation`.
        """
        self._call_hook("before_evaluate_fn")
        return {"evaluation": complete_evaluation(self.algorithm.evaluate(), self.algorithm.config)}

    def collect_metrics(self, *_: Any, **__: Any) -> dict[str, Any]:
        """The episodes of the smoothing window, by the legacy keys; workers can't be chosen."""
        config = self.algorithm.config
        return next((adapter.results.summary(config) for adapter in self._adapters()), {})

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        """Goes on with another config; what was learned is lost until a restore.

        Returns:
            True, which tells Tune that this actor can be used again.
        """
        algorithms.stop_algorithm(self.algorithm)
        self.setup(copy.deepcopy(new_config))
        return True

    def cleanup(self) -> None:
        """Stops the algorithm; `stop()` calls it."""
        algorithms.stop_algorithm(self.algorithm)
        getattr(self._logger, "close", lambda: None)()

    # What the class knows

    @classmethod
    def with_updates(cls, **overrides: Any) -> type[Trainer]:
        """Makes a class with other defaults and hooks, as `build_trainer` classes could.

        Args:
            **overrides: What `rllib_compat.trainer.templates.updated` takes.

        Raises:
            GoneError: Something else was to be updated; it was part of another architecture.
        """
        return templates.updated(cls, **overrides)

    @classmethod
    def default_resource_request(cls, config: Mapping[str, Any]) -> Any:
        """What Tune reserves for a trial.

        Returns:
            Bundles, as today; their `to_json()` is what `resources_per_trial` took until Ray 1.x.
        """
        given = merge(templates.own_defaults(cls), config)
        own = templates.own_keys(cls, given)
        algorithm_config = translate(
            {key: value for key, value in given.items() if key not in own},
            algorithm=cls.algorithm_name,
            legacy_ray=cls.legacy_ray,
            old_networks=cls.legacy_ray != TODAY,
            on_unknown="warn",  # a function around a trainer may have keys of its own
        ).algorithm_config
        request = algorithm_config.algo_class.default_resource_request(algorithm_config)
        return TrialResources.of(request)

    @classmethod
    def resource_help(cls, config: Mapping[str, Any]) -> str:
        """What Tune says when there are too few resources."""
        asked = {key: config[key] for key in RESOURCES if key in config}
        return (
            f"{cls.__name__} needs a CPU for itself and for each worker, and what its config says: "
            f"{asked}. Lower {', '.join(RESOURCES)}, or start Ray with more."
        )

    def __getattr__(self, name: str) -> Any:
        if name in GONE:
            raise GoneError(
                f"A trainer has no `{name}` any more.", where=f"trainer.{name}", fix=GONE[name]
            )
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def _call_hook(self, name: str, *arguments: Any) -> None:
        if name in self.hooks:
            self.hooks[name](self, *arguments)

    def _note_env_name(self) -> None:
        env = self.translation.env_settings.env
        _, note = resolve_env_name(env) if isinstance(env, str) else (env, None)
        if note:
            self.translation.report.add("env.name", Verdict.NOTE, "$.env", note)

    def _adapters(self) -> list[CallbackAdapter]:
        return [c for c in episodes.callbacks_of(self.algorithm) if _adapts(type(c))]


def _adapts(callbacks_class: Any) -> bool:
    return isinstance(callbacks_class, type) and issubclass(callbacks_class, CallbackAdapter)
