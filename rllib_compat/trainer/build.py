"""Builds a trainer's algorithm from its translated config."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rllib_compat import registry
from rllib_compat.config import Translation, translate
from rllib_compat.networks import fresh
from rllib_compat.neutral import spaces
from rllib_compat.neutral.errors import ConfigError
from rllib_compat.neutral.frozen import frozen
from rllib_compat.ray_versions import algorithms, configs, old_stack, tune
from rllib_compat.registry.keys import TODAY
from rllib_compat.runtime.adapted_config import limit_overrides_cache
from rllib_compat.runtime.callbacks import CallbackAdapter, adapt_callbacks, with_trainer
from rllib_compat.runtime.connectors import add_preprocessors
from rllib_compat.runtime.env_runners import use_compat_env_runners
from rllib_compat.runtime.envs import adapt_env, make_env
from rllib_compat.runtime.learner_info import names_only_policy
from rllib_compat.runtime.learners import use_reporting_learner
from rllib_compat.runtime.placeholders import placeholder_env
from rllib_compat.trainer import refusals, subclasses
from rllib_compat.trainer.defaults import Origin, merge
from rllib_compat.trainer.refusals import with_resources

if TYPE_CHECKING:
    import gymnasium
    from ray.rllib.algorithms.algorithm import Algorithm
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
    from ray.rllib.core.rl_module.rl_module import RLModuleSpec

# The keys that replace failed workers.
RESTARTING = (
    "recreate_failed_workers",
    "recreate_failed_env_runners",
    "restart_failed_env_runners",
)


@frozen
class AlgorithmBuilder:
    """Builds the algorithm of a trainer: with the old networks, callbacks and results.

    Attributes:
        translation: The translated config.
        origin: Where the config comes from.
        config: The legacy config with the defaults of its Ray.
        given: The legacy config as it was given.
        trainer: The trainer's class.
        own_policy: The policy class that it asks for, or None for the algorithm's own.
        learns_once: Whether it samples and learns once from each batch, unlike RLlib's algorithms.
        replay_columns: See `Trainer`.
        logdir: The folder for files.
    """

    translation: Translation
    origin: Origin
    config: dict[str, Any]
    given: Mapping[str, Any]
    trainer: type[subclasses.LegacyTrainer]
    own_policy: type | None = None
    learns_once: bool = False
    replay_columns: bool | None = None
    logdir: str = ""

    def build(self) -> Algorithm:
        """Builds it.

        Raises:
            ConfigError: The old API stack can't build what the config asks for.
            OldStackNeededError: Only the old API stack can build it.
            RayNotSupportedError: The installed Ray can't build it.
        """
        config = self._algorithm_config()
        try:
            with with_resources(config, self.config):
                algorithm = algorithms.build_algorithm(config)
        except Exception as error:
            if (why := self._reason(error)) is not None:
                raise why from error
            raise
        if self.translation.api_stack == "old":
            policies = algorithm.env_runner.policy_map.values()
            refusals.require_actions(self.config, [policy.action_space for policy in policies])
        else:
            refusals.require_recording(algorithm)
        return algorithm

    def _algorithm_config(self) -> AlgorithmConfig:
        translation = self.translation
        config = translation.algorithm_config.copy(copy_frozen=False)
        subclasses.set_policy_and_steps(
            config, self.trainer, self.own_policy, plain=self.learns_once
        )
        if self.own_policy is not None:  # it reads keys of its trainer's class
            for key, value in subclasses.own_keys(self.trainer, self.config).items():
                setattr(config, key, value)
        validate_env = subclasses.env_validator(self.trainer)
        if validate_env is not None:
            settings = replace(translation.env_settings, validate_env=validate_env)
            config.environment(adapt_env(settings))
        # Also without callbacks, the adapter completes the result.
        given = config.callbacks_class
        adapts = isinstance(given, type) and issubclass(given, CallbackAdapter)
        adapter = given if adapts else adapt_callbacks(given)
        config.callbacks(
            with_trainer(
                adapter,
                truncation_terminates=translation.truncation_terminates,
                legacy_ray=self.origin.legacy_ray,
                names_only_policy=names_only_policy(translation.legacy_algorithm, self.config),
            )
        )
        # Until Ray 2.40, the first error in an environment or a callback reached the user.
        restart = any(translation.legacy_config.get(key) for key in RESTARTING)
        config.fault_tolerance(restart_failed_env_runners=restart)
        legacy = translation.legacy_training
        if config.enable_env_runner_and_connector_v2:
            keeps_integers = legacy is not None and legacy.filter_keeps_integers
            add_preprocessors(config, filter_keeps_integers=keeps_integers)
            if config.env is None:
                self._set_placeholder_env(config)
            configs.keep_env_runners(config, config.observation_space, config.action_space)
        else:
            config.initial_lr = None if legacy is None else legacy.initial_lr
            old_stack.patch_multi_agent_batches()
            old_stack.register_remote_env(config)
        use_compat_env_runners(config)
        limit_overrides_cache(config)
        tune.without_logger(config, self.logdir)
        self.name_networks(config)
        if config.enable_rl_module_and_learner and legacy is not None:
            from rllib_compat.algorithms import legacy_learners  # it needs torch

            legacy_learners.use_legacy_learners(config, legacy)
        if self.replay_columns is not False:
            from rllib_compat.algorithms.dqn import may_replay_columns, replay_columns

            if self.replay_columns or may_replay_columns(config):
                replay_columns(config)
        if config.enable_rl_module_and_learner:
            use_reporting_learner(config)
        return config

    def _reason(self, error: Exception) -> Exception | None:
        """The error of the config behind an error of Ray, or None."""
        # An error in a remote environment reaches this process as another; only the log has it.
        if self.config.get("env") is not None:
            from ray.rllib.env.env_context import EnvContext

            context = EnvContext(self.config.get("env_config") or {}, 0)
            env = make_env(self.translation.env_settings, context)
            space = getattr(env, "action_space", None)
            if self.translation.api_stack == "old":
                refusals.require_actions(self.config, [space])
            elif self.origin.api_stack == "auto" and refusals.needs_old_stack(
                self.translation, self.config, space
            ):
                return refusals.OldStackNeededError(f"The new API stack can't act in {space}.")
        return refusals.refused(error, self.translation)

    def name_networks(
        self,
        config: AlgorithmConfig,
        more: Mapping[str, Any] | None = None,
        *,
        converted: Collection[str] = (),
    ) -> None:
        """Sets the modules of a config to those of the trainer's networks, in place.

        Args:
            config: A translated config.
            more: Keys of its legacy config beside those of this trainer.
            converted: The policies whose modules come from a checkpoint, and are kept.
        """
        from rllib_compat.algorithms import catalogs  # it needs torch

        translation, ray = self.translation, self.origin.legacy_ray
        legacy = merge(self.config if ray is not None else translation.legacy_config, more or {})
        algorithm = translation.legacy_algorithm
        new_stack = self.origin.ray != TODAY and translation.api_stack == "new"
        if new_stack and fresh.makes(algorithm, legacy):
            catalogs.use_legacy_networks(
                config, legacy, algorithm=algorithm, legacy_ray=ray, converted=converted
            )
        else:
            catalogs.set_catalogs(config)

    def module_spec(
        self,
        policy_id: str,
        policy: tuple[object, ...],
        both: tuple[gymnasium.Space[Any], gymnasium.Space[Any]],
    ) -> tuple[RLModuleSpec, dict[str, Any]]:
        """The spec of another policy's module and its overrides, as if the config had it."""
        from ray.rllib.policy.policy import PolicySpec

        more = {"multiagent": {"policies": {policy_id: policy}}}
        given = merge(subclasses.without_own_keys(self.trainer, self.given), more)
        config = translate(given, **self.origin.arguments).algorithm_config
        self.name_networks(config, more)
        spec = PolicySpec(observation_space=both[0], action_space=both[1])
        specs = config.get_multi_rl_module_spec(policy_dict={policy_id: spec}).rl_module_specs
        overrides = config.algorithm_config_overrides_per_module.get(policy_id)
        return specs[policy_id], dict(overrides or {})

    def _set_placeholder_env(self, config: AlgorithmConfig) -> None:
        """Gives a config without an environment one with its spaces.

        Env runners compute actions and hold weights; a step raises an error.

        Raises:
            ConfigError: The spaces are not known, and nothing but an environment has them.
        """
        if config.observation_space is None or config.action_space is None:
            if not (
                registry.of(self.translation.algorithm).offline or configs.is_multi_agent(config)
            ):
                raise ConfigError(
                    "There is neither an environment nor spaces.",
                    where="$.env",
                    fix="Pass env=…; to compute actions only, set observation_space and "
                    "action_space in the config.",
                )
            return
        seen, acts = map(spaces.from_object, (config.observation_space, config.action_space))
        if seen is not None and acts is not None:
            env, env_config = placeholder_env(None, seen, acts, config.env_config)
            config.environment(env, env_config=env_config, disable_env_checking=True)
