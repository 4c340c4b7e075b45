"""What ES and ARS share: episodes with perturbed weights, and a step along their gradient.

The policy is a network without a value function. Of Box actions, its output is the action itself;
it goes to the environment as it is. Everything else is drawn. (`agents/es/es_torch_policy.py` of
Ray 1.13.)
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar

import gymnasium
import numpy as np
import ray
import torch
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.columns import Columns
from ray.rllib.core.models.base import ENCODER_OUT
from ray.rllib.core.models.configs import FreeLogStdMLPHeadConfig
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.utils.metrics import ENV_RUNNER_RESULTS, LEARNER_RESULTS

from rllib_compat.algorithms.base import (
    GradientFreeLearner,
    RemovedAlgorithm,
    RemovedAlgorithmConfig,
)
from rllib_compat.algorithms.catalogs import BCCatalog
from rllib_compat.algorithms.noise import Array, noise_table
from rllib_compat.algorithms.rollouts import Rollouts, Search, try_perturbations
from rllib_compat.algorithms.sampling import on_env_runners
from rllib_compat.networks.modules.distributions import Deterministic
from rllib_compat.networks.modules.layers import OF_A_HEAD, init_weights
from rllib_compat.neutral.errors import ConfigError
from rllib_compat.ray_versions import configs, connectors, env_runners, training_steps
from rllib_compat.runtime.connectors import mean_std_filter

if TYPE_CHECKING:
    from rllib_compat.ray_versions.types import EnvRunner, EnvRunnerGroup


class EvolutionConfig(RemovedAlgorithmConfig):
    """The config of an algorithm that perturbs weights.

    Observations are normalised by a running mean and deviation, which all env runners share
    (`env_to_module_connector`).
    """

    def __init__(self, algo_class: type | None = None) -> None:
        super().__init__(algo_class=algo_class)
        self.environment(normalize_actions=False, clip_actions=False)
        self.env_runners(env_to_module_connector=mean_std_filter)
        configs.keep_connectors_of_local_runner(self)

    def get_default_rl_module_spec(self) -> Any:
        """Describes the module: a policy without a value function."""
        spec = configs.todays_config("BC").get_default_rl_module_spec()
        return RLModuleSpec(module_class=spec.module_class, catalog_class=EvolutionCatalog)

    def validate(self) -> None:
        """Checks all settings against each other.

        Raises:
            ConfigError: It can't run so.
        """
        super().validate()
        if configs.is_multi_agent(self):
            raise ConfigError(
                f"{self.algo_class.__name__} supports only one agent and one policy.",
                where="policies",
                fix="Train a multi-agent config with PPO.",
            )
        if self.eval_prob >= 1:
            raise ConfigError(
                f"With eval_prob={self.eval_prob}, no episode has a perturbation, so env runners "
                "would sample forever.",
                where="eval_prob",
                fix="Set it below 1; the default is 0.003 for ES and 0.03 for ARS.",
            )


class EvolutionCatalog(BCCatalog):
    """Builds networks whose output is the action, where actions are a Box.

    Unlike Ray's, it takes `fcnet_hiddens=[]`: a linear policy. Networks begin as they did
    (`normc_initializer`): what a perturbation does depends on how large weights are.
    """

    _model_config_dict: dict[str, Any]

    def __init__(
        self, observation_space: Any, action_space: Any, model_config_dict: Mapping[str, Any]
    ) -> None:
        if model_config_dict.get("use_lstm"):
            raise ConfigError(
                "ES and ARS do not support recurrent policies.",
                where="model.use_lstm",
                fix="Remove the key, or train PPO.",
            )
        hiddens = model_config_dict.get("fcnet_hiddens")
        vectors = len(observation_space.shape) == 1
        self._drawn_by_ray = bool(model_config_dict.get("fcnet_kernel_initializer"))
        self._linear = vectors and hiddens is not None and len(hiddens) == 0
        if self._linear:  # Ray asks for the size of the last hidden layer
            model_config_dict = {**model_config_dict, "fcnet_hiddens": [1]}
        super().__init__(observation_space, action_space, model_config_dict)
        if self._linear:
            self.latent_dims = observation_space.shape

    def build_encoder(self, framework: str) -> Any:
        """The hidden layers."""
        if self._linear:
            return _Unchanged()
        made = super().build_encoder(framework)
        return made if self._drawn_by_ray else init_weights(made)

    def build_pi_head(self, framework: str) -> Any:
        """The last layer, which begins small."""
        settings = self._model_config_dict
        # Only dense networks read it, and those of ES and ARS did, whatever half of it means there.
        if settings.get("free_log_std") and len(self.observation_space.shape) == 1:
            made = self._halved_head(framework)
        else:
            self._model_config_dict = {**settings, "free_log_std": False}
            made = super().build_pi_head(framework)
        return made if self._drawn_by_ray else init_weights(made, OF_A_HEAD)

    def _halved_head(self, framework: str) -> Any:
        """A last layer that gives half of what is asked; the rest are numbers of their own."""
        asked = {"space": self.action_space, "model_config": self._model_config_dict}
        outputs = self.get_action_dist_cls(framework).required_input_dim(**asked)
        if outputs % 2:
            raise ConfigError(
                f"free_log_std needs an even number of outputs, and these actions need {outputs}.",
                where="model.free_log_std",
                fix="Remove the key.",
            )
        self.pi_head_config = FreeLogStdMLPHeadConfig(
            clip_log_std=False,
            output_layer_dim=outputs,
            output_layer_activation="linear",
            hidden_layer_activation=self.pi_head_activation,
            hidden_layer_dims=self.pi_head_hiddens,
            input_dims=self.latent_dims,
        )
        return self.pi_head_config.build(framework=framework)

    def get_action_dist_cls(self, framework: str) -> Any:
        """The class of what actions are drawn from."""
        if isinstance(self.action_space, gymnasium.spaces.Box):
            return Deterministic
        return super().get_action_dist_cls(framework)


class _Unchanged(torch.nn.Module):
    """No hidden layers."""

    def forward(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        return {ENCODER_OUT: batch[Columns.OBS]}


class Evolution(RemovedAlgorithm, Algorithm):  # type: ignore[misc]  # Ray has no types
    """Tries perturbations of the weights, and moves them to where the returns grow."""

    #: How long an env runner plays for one call.
    least_seconds: ClassVar[float] = 0.0

    def training_step(self) -> None:
        """Makes one step."""
        (named,) = training_steps.foreach_learner(self, EvolutionLearner.weights)[:1]
        shapes = {name: array.shape for name, array in named.items()}
        center = np.concatenate([array.ravel() for array in named.values()])
        rollouts = self._collect(center, shapes)
        if not rollouts:  # every env runner has failed
            return
        returns = np.array([row for part in rollouts for row in part.returns], np.float32)
        places = [place for part in rollouts for place in part.places]
        noise = ray.get(self._noise)
        gradient = self.ascent(returns, lambda row: noise[places[row] :][: center.size])
        (moved,) = training_steps.foreach_learner(
            self, partial(EvolutionLearner.descend, gradient=self.descent(gradient, center))
        )[:1]
        env_runners.send_weights(self, self.env_runner_group)
        share_filter(self.env_runner_group)
        self._tell(rollouts, center, gradient, moved)

    def ascent(self, returns: Array, perturbation: object) -> Array:
        """Where the return grows, by returns `[n, 2]` of weights plus and minus perturbations."""
        raise NotImplementedError

    def descent(self, ascent: Array, center: Array) -> Array:  # noqa: ARG002
        """What the optimizer is given: where the loss grows."""
        return -ascent

    def is_enough(self, episodes: int, steps: int) -> bool:
        """Whether as many episodes and steps have been played as one step of learning takes."""
        raise NotImplementedError

    def search(self) -> dict[str, Any]:
        """The settings of `Search` that are the algorithm's own."""
        return {}

    def _collect(self, center: Array, shapes: Any) -> list[Rollouts]:
        config = self.config
        if config.noise_size < center.size:
            raise ConfigError(
                f"A noise table of {config.noise_size} numbers is too small for a network of "
                f"{center.size} parameters.",
                where="noise_size",
                fix="Set a larger number; the default is 250,000,000.",
            )
        first = not hasattr(self, "_noise")
        if first:  # not in setup: a conversion builds algorithms that never sample
            self._noise = ray.put(noise_table(config.noise_size))
            self._eval_returns: list[float] = []
        search = Search(
            noise=self._noise,
            stdev=config.noise_stdev,
            eval_prob=config.eval_prob,
            least_seconds=self.least_seconds,
            **self.search(),
            seed=config.seed if first else None,
        )
        asked = partial(try_perturbations, center=ray.put(center), shapes=shapes, search=search)
        collected: list[Rollouts] = []
        episodes = steps = 0
        while not self.is_enough(episodes, steps):
            found = on_env_runners(self, asked, attrgetter("metrics"))
            if not found:
                return []
            collected += found
            episodes += sum(2 * len(part.places) for part in found)
            steps += sum(part.steps for part in found)
        return collected

    def _tell(self, rollouts: list[Rollouts], center: Array, gradient: Array, moved: Array) -> None:
        """Logs what the old results had."""
        logged = {
            "weights_norm": float(np.square(center + moved).sum()),
            "weights_std": float(np.std(center + moved)),
            "grad_norm": float(np.square(gradient).sum()),
            "update_ratio": float(np.linalg.norm(moved) / np.linalg.norm(center)),
        }
        self.metrics.log_dict(logged, key=(LEARNER_RESULTS, DEFAULT_MODULE_ID), window=1)
        returns = [value for part in rollouts for value in part.eval_returns]
        lengths = [value for part in rollouts for value in part.eval_lengths]
        if returns:
            self._eval_returns.append(float(np.mean(returns)))
            length = float(np.mean(lengths))
            self.metrics.log_value((ENV_RUNNER_RESULTS, "episode_len_mean"), length, window=1)
        if self._eval_returns:
            gain = float(np.mean(self._eval_returns[-self.config.report_length :]))
            self.metrics.log_value((ENV_RUNNER_RESULTS, "episode_return_mean"), gain, window=1)


def share_filter(group: EnvRunnerGroup) -> None:
    """Adds up what the filters of all env runners have seen, and gives it to all of them.

    What Ray does by itself adds up the whole statistics of each env runner every time, of which
    all but the last part came from the others.
    """
    mine = connectors.observation_filter(group.local_env_runner)
    if mine is None or group.num_remote_workers() == 0:
        return
    for seen in env_runners.foreach_env_runner(group, _take_filter_buffer, local_env_runner=False):
        mine.apply_changes(seen, with_buffer=False)
    give = partial(_give_statistics, statistics=mine.as_serializable())
    env_runners.foreach_env_runner(group, give, local_env_runner=False)


def _take_filter_buffer(env_runner: EnvRunner) -> Any:
    """The filter of an env runner; its buffer has what it has seen since the last time."""
    held = connectors.observation_filter(env_runner)
    seen = held.as_serializable()
    held.reset_buffer()
    return seen


def _give_statistics(env_runner: EnvRunner, statistics: object) -> None:
    connectors.observation_filter(env_runner).sync(statistics)


class EvolutionLearner(GradientFreeLearner):
    """Moves weights by gradients that others have estimated."""

    def weights(self) -> dict[str, Array]:
        """What is perturbed, by name, in the order of the names."""
        named = dict(self._module_of_policy().named_parameters())
        return {n: named[n].detach().cpu().numpy().copy() for n in sorted(named)}

    def descend(self, gradient: Array) -> Array:
        """Makes a step of the optimizer; returns what has moved, in the order of `weights`."""
        before, begin = self.weights(), 0
        named = dict(self._module_of_policy().named_parameters())
        for name, array in before.items():
            end = begin + array.size
            part = gradient[begin:end].reshape(array.shape).astype(np.float32)
            named[name].grad = torch.as_tensor(part, device=named[name].device)
            begin = end
        for optimizer in self.get_optimizers_for_module(DEFAULT_MODULE_ID):
            self.step(optimizer[1])
        after = self.weights()
        return np.concatenate([(after[name] - before[name]).ravel() for name in before])

    def configure_optimizers_for_module(self, module_id: str, config: object = None) -> None:
        """Makes the optimizer."""
        parameters = self.get_parameters(self.module[module_id])
        optimizer, rate = self.optimizer_of(parameters, config)
        self.register_optimizer(
            module_id=module_id, optimizer=optimizer, params=parameters, lr_or_lr_schedule=rate
        )

    def optimizer_of(self, parameters: object, config: object) -> tuple[Any, Any]:
        """The optimizer of a module's parameters, and its learning rate."""
        raise NotImplementedError

    def step(self, optimizer: Any) -> None:
        """Lets an optimizer make its step."""
        optimizer.step()

    def _module_of_policy(self) -> Any:
        return self.module[DEFAULT_MODULE_ID].unwrapped()
