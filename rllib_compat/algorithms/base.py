"""What all algorithms that Ray removed share: config, registration with Tune, learners."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, ClassVar, cast

import torch
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig, NotProvided
from ray.rllib.core.learner.torch.torch_learner import TorchLearner
from ray.tune import register_trainable

from rllib_compat.algorithms.defaults import DEFAULTS
from rllib_compat.networks.previous_steps import LOOKING_BACK
from rllib_compat.neutral.errors import ConfigError
from rllib_compat.ray_versions import learners, tune
from rllib_compat.runtime.failures import give_env_runners
from rllib_compat.runtime.observation_connectors import PreviousSteps


def register(algorithm: type) -> None:
    """Registers an algorithm with Ray's Tune by its name, which `Tuner("A2C")` then finds.

    Ray keeps the names for the whole cluster, so its workers find them, too. It pickles what it
    registers: this is called at the end of the algorithm's file, where pickle finds the class by
    its place. A name that somebody has registered already stays as it is.
    """
    if not tune.is_registered_trainable(algorithm.__name__):
        register_trainable(algorithm.__name__, algorithm)


#: What else is local to a method that calls `super()` with the rest of its arguments.
_NO_SETTINGS = ("self", "kwargs", "__class__")


class OwnEnvRunnersConfig:
    """The first base of a config whose env runners are those of this package."""

    def validate(self) -> None:
        """Checks all settings against each other."""
        super().validate()  # type: ignore[misc]  # of the real config
        give_env_runners(cast("AlgorithmConfig", self))


class RemovedAlgorithmConfig(OwnEnvRunnersConfig, AlgorithmConfig):  # type: ignore[misc]  # Ray has no types
    """A config that starts from the defaults that the old algorithm had.

    Args:
        algo_class: The algorithm; a subclass of one of ours has the defaults of that.
    """

    #: The settings that its module is told.
    module_settings: ClassVar[tuple[str, ...]] = ()

    def __init__(self, algo_class: type | None = None) -> None:
        super().__init__(algo_class=algo_class)
        names = (part.__name__ for part in self.algo_class.__mro__)
        defaults = next((DEFAULTS[name] for name in names if name in DEFAULTS), {})
        for name, default in defaults.items():
            setattr(self, name, deepcopy(default))

    @property
    def _model_config_auto_includes(self) -> dict[str, Any]:
        told = {name: getattr(self, name) for name in self.module_settings}
        return {**super()._model_config_auto_includes, **told}

    def build_env_to_module_connector(self, *args: Any, **kwargs: Any) -> Any:
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
                f"With {' and '.join(asked)}, an LSTM takes the step before from behind the "
                "observation, and no connector puts it there.",
                where=f"model_config.{asked[0]}",
                fix="env_runners(env_to_module_connector=…) with rllib_compat.adapters' "
                "PreviousSteps(actions=…, rewards=…, one_hot=True), or leave it out.",
            )
        return pipeline

    def set_given(self, arguments: Mapping[str, Any]) -> None:
        """Sets the settings that were given.

        Args:
            arguments: The `locals()` of the method whose arguments are called as the settings are.
        """
        for name, value in arguments.items():
            if name not in _NO_SETTINGS and value is not NotProvided:
                setattr(self, name, value)

    def require_new_api_stack(self) -> None:
        """Makes sure that the new API stack is asked for.

        Raises:
            ConfigError: It is not.
        """
        if not (self.enable_rl_module_and_learner and self.enable_env_runner_and_connector_v2):
            raise ConfigError(
                f"{self.algo_class.__name__} runs on the new API stack only.",
                where="api_stack",
                fix="Leave the API stack as it is by default.",
            )


class GradientFreeLearner(TorchLearner):  # type: ignore[misc]  # Ray has no types
    """Holds the modules; it has no optimizers."""

    def configure_optimizers_for_module(self, module_id: str, config: Any = None) -> None:
        """Makes none."""

    def compute_loss_for_module(self, **_: Any) -> Any:
        """There is no loss.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError("It does not learn by gradients.")


class ActorCriticLearner(learners.learner_with_targets(), TorchLearner):  # type: ignore[misc]
    """Trains the actor with one Adam and all critics with another.

    The module says with `parameters_of` whose parameters are whose.
    """

    #: The epsilon that both had.
    epsilon: ClassVar[float] = 1e-8
    #: What they were.
    optimizer: ClassVar[type] = torch.optim.Adam

    def configure_optimizers_for_module(self, module_id: str, config: Any = None) -> None:
        """Makes both optimizers."""
        config = self.config.get_config_for_module(module_id)
        module = self.module[module_id].unwrapped()
        for part, rate in (("actor", config.actor_lr), ("critic", config.critic_lr)):
            parameters = module.parameters_of(part)
            self.register_optimizer(
                module_id=module_id,
                optimizer_name=part,
                optimizer=self.optimizer(parameters, eps=self.epsilon),
                params=parameters,
                lr_or_lr_schedule=rate,
            )

    def updates_of_critics(self, module_id: str) -> int:
        """How many updates the critics have made; the optimizer's checkpoint says so, too."""
        slots = self.get_optimizer(module_id, "critic").state.values()
        return next((int(slot["step"]) for slot in slots), 0)
