"""What all algorithms that Ray removed share: config, registration with Tune, learners."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from inspect import Parameter, Signature
from types import MappingProxyType
from typing import Any, ClassVar, TypeAlias, cast

import torch
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig, NotProvided
from ray.rllib.core.learner.torch.torch_learner import TorchLearner
from ray.rllib.core.rl_module.apis import TargetNetworkAPI
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.utils.schedules.scheduler import Scheduler
from ray.tune import register_trainable

from rllib_compat.algorithms.defaults import DEFAULTS, MODEL_DEFAULTS
from rllib_compat.networks.previous_steps import LOOKING_BACK
from rllib_compat.neutral.errors import ConfigError
from rllib_compat.ray_versions import learners, renames, tune
from rllib_compat.runtime.env_runners import use_compat_env_runners
from rllib_compat.runtime.observation_connectors import PreviousSteps


def register(algorithm: Any, config: Any, learner: type | None = None) -> None:
    """Makes an algorithm, its config and its learner each other's default; registers it with Tune.

    `Tuner("A2C")` finds it by its name then. Ray keeps the names for the whole cluster, so its
    workers find them, too. It pickles what it registers: this is called at the end of the
    algorithm's file, where pickle finds the class by its place. A name that somebody has registered
    already stays as it is.
    """
    algorithm.config_class, config.default_algorithm = config, algorithm
    if learner is not None:
        config.default_learner_class = learner
    if not tune.is_registered_trainable(algorithm.__name__):
        register_trainable(algorithm.__name__, algorithm)


class RemovedAlgorithm:
    """The first base of an algorithm that Ray removed."""

    #: The class of its default config; `register` sets it.
    config_class: ClassVar[Any]

    @classmethod
    def get_default_config(cls) -> Any:
        """The config that it starts from."""
        return cls.config_class()

    @classmethod
    def get_default_policy_class(cls, config: AlgorithmConfig) -> Any:
        """The policy for the old API stack; None: that can't run it."""
        if cls.config_class.new_stack_only:
            return None
        return super().get_default_policy_class(config)  # type: ignore[misc]  # of the real one


class OwnEnvRunnersConfig:
    """The first base of a config whose env runners are those of this package."""

    def validate(self) -> None:
        """Checks all settings against each other."""
        super().validate()  # type: ignore[misc]  # of the real config
        use_compat_env_runners(cast("AlgorithmConfig", self))


class RemovedAlgorithmConfig(OwnEnvRunnersConfig, AlgorithmConfig):  # type: ignore[misc]  # Ray has no types
    """A config that starts from the defaults that the old algorithm had.

    Its tables of settings are all that has to be said of them: they make `training()`, its
    signature and its documentation. Their defaults are in the table of legacy keys, and where
    that says something else, in `defaults`.

    Args:
        algo_class: A subclass of its algorithm, which has the defaults of that.
    """

    #: Setting → what it means.
    settings: ClassVar[Mapping[str, str]] = MappingProxyType({})
    #: The same, of those that its module is given.
    module_settings: ClassVar[Mapping[str, str]] = MappingProxyType({})
    #: Settings that are merged with their default, if both have the same `type`.
    merged_settings: ClassVar[tuple[str, ...]] = ()
    #: Setting → the least value that it may have, if it is not None.
    least: ClassVar[Mapping[str, float]] = MappingProxyType({})
    #: Settings that are above 0, or None.
    positive: ClassVar[tuple[str, ...]] = ()
    #: Setting → the values that it may have.
    choices: ClassVar[Mapping[str, tuple[str | None, ...]]] = MappingProxyType({})
    #: Setting that may be a schedule `[[step, value], …]` → what it is.
    schedules: ClassVar[Mapping[str, str]] = MappingProxyType({})
    #: Whether the old API stack can't run it.
    new_stack_only: ClassVar[bool] = True
    #: Its algorithm and its learner, which `register` sets, and its module; None: its base's.
    default_algorithm: ClassVar[Any]
    default_learner_class: ClassVar[type | None] = None
    default_module_class: ClassVar[type | None] = None

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        tables = (vars(cls).get(table, {}) for table in ("module_settings", "settings"))
        if own := {name: meaning for table in tables for name, meaning in table.items()}:
            cls.training = _training_method(cls, own)  # type: ignore[method-assign]

    def __init__(self, algo_class: type | None = None) -> None:
        super().__init__(algo_class=algo_class or self.default_algorithm)
        for name, default in DEFAULTS.get(self.legacy_name, {}).items():
            setattr(self, name, deepcopy(default))

    def training(self, **settings: object) -> Any:
        """Sets how it learns; each config has one of its own, with its settings."""
        return super().training(**settings)

    @property
    def legacy_name(self) -> str:
        """The name of the removed algorithm that its own is, or is a subclass of."""
        names: list[str] = [part.__name__ for part in self.algo_class.__mro__]
        return next(name for name in names if name in DEFAULTS)

    @property
    def _model_config_auto_includes(self) -> dict[str, Any]:
        tables = (vars(part).get("module_settings", ()) for part in type(self).__mro__)
        return {
            **super()._model_config_auto_includes,
            **MODEL_DEFAULTS.get(self.legacy_name, {}),
            **{name: getattr(self, name) for table in tables for name in table},
        }

    def get_default_learner_class(self) -> Any:
        """The learner that computes the losses."""
        return self.default_learner_class or super().get_default_learner_class()

    def get_default_rl_module_spec(self) -> Any:
        """Describes the module."""
        if self.default_module_class is None:
            return super().get_default_rl_module_spec()
        return RLModuleSpec(module_class=self.default_module_class)

    def build_env_to_module_connector(self, *args: object, **kwargs: object) -> Any:
        """The pipeline between environment and module.

        Raises:
            ConfigError: The module takes the step before from an observation that has none.
        """
        pipeline = super().build_env_to_module_connector(*args, **kwargs)
        asked = [key for key in LOOKING_BACK if self.model_config.get(key)]
        if not (self.model_config.get("use_lstm") and asked):
            return pipeline
        if not any(isinstance(piece, PreviousSteps) for piece in pipeline.connectors):
            raise ConfigError(
                f"With {' and '.join(asked)}, an LSTM needs the previous step in its observation, "
                "and no connector adds it.",
                where=f"model_config.{asked[0]}",
                fix="Set env_runners(env_to_module_connector=…) to one that returns "
                "rllib_compat.adapters.PreviousSteps(actions=…, rewards=…, one_hot=True), or "
                "remove the setting.",
            )
        return pipeline

    def validate(self) -> None:
        """Checks all settings, each by itself and against each other.

        Raises:
            ConfigError: One of them can't be, two contradict each other, or nothing can run them.
        """
        super().validate()
        new_stack = self.enable_rl_module_and_learner and self.enable_env_runner_and_connector_v2
        if self.new_stack_only and not new_stack:
            raise ConfigError(
                f"{self.algo_class.__name__} runs on the new API stack only.",
                where="api_stack",
                fix="Do not call api_stack().",
            )
        for name in (*self.least, *self.positive):
            given, least = getattr(self, name), self.least.get(name)
            if given is None or (given > 0 if least is None else given >= least):
                continue
            bound = "above 0" if least is None else f"at least {least}"
            default = getattr(self.default_algorithm.get_default_config(), name)
            raise ConfigError(
                f"{name} must be {bound}, and is {given!r}.", where=name, fix=f"{name}={default!r}"
            )
        for name, choices in self.choices.items():
            if (given := getattr(self, name)) not in choices:
                raise ConfigError(
                    f"{name} must be one of {', '.join(map(repr, choices))}, and is {given!r}.",
                    where=name,
                    fix=f"{name}={choices[0]!r}",
                )
        for name, description in self.schedules.items():
            if getattr(self, name) is None:
                continue
            Scheduler.validate(
                fixed_value_or_schedule=getattr(self, name),
                setting_name=name,
                description=description,
            )


def _training_method(config_class: Any, settings: Mapping[str, str]) -> Callable[..., Any]:
    """The `training()` of a config class, with its own settings; the others go to its base."""

    def training(self: Any, **kwargs: Any) -> Any:
        given = {name: kwargs.pop(name) for name in settings if name in kwargs}
        super(config_class, self).training(**kwargs)
        for name, value in given.items():
            if value is not NotProvided:
                merges = name in self.merged_settings
                setattr(self, name, _merge(getattr(self, name), value) if merges else value)
        return self

    defaults = DEFAULTS.get(config_class.__name__.removesuffix("Config"), {})
    documented = (
        f"    {name}: {meaning}{f' Default: {defaults[name]!r}.' if name in defaults else ''}\n"
        for name, meaning in settings.items()
    )
    training.__doc__ = (
        f"Sets how it learns.\n\nArgs:\n{''.join(documented)}"
        "    **kwargs: The settings of its base class.\n\nReturns:\n    The config itself.\n"
    )
    training.__qualname__ = f"{config_class.__qualname__}.training"
    training.__module__ = config_class.__module__
    parameters = [
        Parameter("self", Parameter.POSITIONAL_OR_KEYWORD),
        *(Parameter(name, Parameter.KEYWORD_ONLY, default=NotProvided) for name in settings),
        Parameter("kwargs", Parameter.VAR_KEYWORD),
    ]
    training.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return training


def _merge(default: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """What is given, and the default where it is silent; another type has none of its keys."""
    same = given.get("type", default.get("type")) == default.get("type")
    return {**(default if same else {}), **given}


class GradientFreeLearner(TorchLearner):  # type: ignore[misc]  # Ray has no types
    """Holds the modules; it has no optimizers."""

    def configure_optimizers_for_module(self, module_id: str, config: object = None) -> None:
        """Makes none."""

    def compute_loss_for_module(self, **_: object) -> Any:
        """There is no loss.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError("It does not learn from a loss.")


#: What a learner gets of a module: columns of a batch, or what its forward pass gave.
Batch: TypeAlias = Mapping[str, Any]
#: A loss, and what is logged of it by name, or a function that computes that when it is reported.
Loss: TypeAlias = tuple[torch.Tensor, Mapping[str, Any] | Callable[[], Mapping[str, Any]]]


class LossLearner:
    """The first base of a learner that computes losses of its own."""

    metrics: Any

    def module_loss(
        self, module_id: str, config: AlgorithmConfig, batch: Batch, out: Batch
    ) -> Loss:
        """The loss of a module by what its `forward_train` gave (`out`), and its metrics."""
        raise NotImplementedError

    def compute_loss_for_module(
        self, *, module_id: str, config: AlgorithmConfig, batch: Batch, fwd_out: Batch
    ) -> Any:
        """The loss of a module; Ray calls it."""
        loss, terms = self.module_loss(module_id, config, batch, fwd_out)
        learners.log_terms(self, module_id, terms)
        return loss


_DQNLearner: Any = renames.resolve("DQNLearner")


class TargetNetworkLearner(LossLearner, _DQNLearner, TorchLearner):  # type: ignore[misc]
    """Makes target networks and lets them follow, as Ray's DQN does, without any loss.

    It is a class of a module: an actor that learns gets the methods of its class one by one, and
    would have two classes of one that is made in a function.
    """

    def build(self) -> None:
        """Builds the learner.

        What adds the next observations to batches came from the config in Ray 2.40, and comes from
        the learner since.
        """
        super().build()
        pipeline = self._learner_connector
        if pipeline is not None and self.config.add_default_connectors_to_learner_pipeline:
            learners.add_next_observations(pipeline)

    @classmethod
    def rl_module_required_apis(cls) -> list[type]:
        """What a module has to have."""
        return [TargetNetworkAPI]

    def _reset_noise(self) -> None:
        """Nothing: there are no noisy layers. Ray 2.40 wants every subclass to say so."""


class ActorCriticLearner(TargetNetworkLearner):
    """Trains the actor with one Adam and all critics with another.

    The module says with `parameters_of` whose parameters are whose.
    """

    #: Optimizer → the setting that is its learning rate.
    rates: ClassVar[Mapping[str, str]] = MappingProxyType(
        {"actor": "actor_lr", "critic": "critic_lr"}
    )
    #: The epsilon that they had.
    epsilon: ClassVar[float] = 1e-8
    #: What they were.
    optimizer: ClassVar[type] = torch.optim.Adam

    def configure_optimizers_for_module(
        self, module_id: str, config: AlgorithmConfig | None = None
    ) -> None:
        """Makes the optimizers."""
        config = self.config.get_config_for_module(module_id)
        module = self.module[module_id].unwrapped()
        for part, rate in self.rates.items():
            if parameters := module.parameters_of(part):
                self.register_optimizer(
                    module_id=module_id,
                    optimizer_name=part,
                    optimizer=self.optimizer(parameters, eps=self.epsilon),
                    params=parameters,
                    lr_or_lr_schedule=getattr(config, rate),
                )

    def updates_of_critics(self, module_id: str) -> int:
        """How many updates the critics have made; the optimizer's checkpoint says so, too."""
        slots = self.get_optimizer(module_id, "critic").state.values()
        return next((int(slot["step"]) for slot in slots), 0)
