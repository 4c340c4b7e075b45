"""The networks that a config of the old Rays begins with, where today's defaults are others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gymnasium as gym
import torch
from ray.rllib.algorithms.bc.bc_catalog import BCCatalog as RayBCCatalog
from ray.rllib.algorithms.sac.sac_catalog import SACCatalog as RaySACCatalog
from ray.rllib.core.columns import Columns
from ray.rllib.core.models.configs import MLPEncoderConfig
from ray.rllib.core.models.torch.encoder import TorchMLPEncoder

from rllib_compat import ray_versions
from rllib_compat.algorithms.initial_weights import ActorCriticCatalog
from rllib_compat.networks.modules.encoders import OwnEncoders
from rllib_compat.networks.modules.initial_weights import OF_A_HEAD, BeginsAsBefore

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig


class JoinedEncoder(TorchMLPEncoder):  # type: ignore[misc]  # Ray has no types
    """Encodes an observation and an action as one vector; its weights are named as ever."""

    def _forward(self, inputs: Any, **kwargs: Any) -> Any:
        if Columns.ACTIONS in inputs:  # earlier releases, up to Ray 2.52, join them themselves
            both = inputs[Columns.OBS], inputs[Columns.ACTIONS]
            inputs = {Columns.OBS: torch.cat(both, dim=-1)}
        return super()._forward(inputs, **kwargs)


class SACCatalog(OwnEncoders, BeginsAsBefore, RaySACCatalog):  # type: ignore[misc]
    """Today's networks of SAC, but for the critics of continuous actions.

    The layers of a critic took the observation and the action together. Ray 2.60 has layers for
    each of them and more for both, which are twice as many, and learn slower from their first
    weights.
    """

    def build_encoder(self, framework: str) -> Any:
        """The hidden layers of the policy, and of the critics of discrete actions."""
        return self._begun(super().build_encoder(framework))

    def build_qf_encoder(self, framework: str) -> Any:
        """The hidden layers of a critic."""
        seen, acted = self.observation_space, self.action_space
        if not all(isinstance(s, gym.spaces.Box) and len(s.shape) == 1 for s in (seen, acted)):
            return self._begun(super().build_qf_encoder(framework))
        *hidden, last = self._model_config_dict["fcnet_hiddens"]
        activation = self._model_config_dict["fcnet_activation"]
        layers = MLPEncoderConfig(
            input_dims=[seen.shape[0] + acted.shape[0]],
            hidden_layer_dims=hidden,
            hidden_layer_activation=activation,
            output_layer_dim=last,
            output_layer_activation=activation,
        )
        return self._begun(JoinedEncoder(layers))

    def build_pi_head(self, framework: str) -> Any:
        """The last layer of the policy."""
        return self._begun(super().build_pi_head(framework), OF_A_HEAD)

    def build_qf_head(self, framework: str) -> Any:
        """The last layer of a critic."""
        return self._begun(super().build_qf_head(framework), OF_A_HEAD)


_RayDQNCatalog: Any = ray_versions.dqn_catalog()


class DQNCatalog(OwnEncoders, _RayDQNCatalog):  # type: ignore[misc]
    """Today's networks of DQN."""


class BCCatalog(OwnEncoders, RayBCCatalog):  # type: ignore[misc]
    """Today's networks of BC."""


#: An algorithm → what builds its networks as the old Rays built them; those of DQN and BC begin as
#: today's. Subclasses of these stand here for themselves: BC is one of MARWIL.
CATALOGS = {
    "PPO": ActorCriticCatalog,
    "DDPPO": ActorCriticCatalog,
    "APPO": ActorCriticCatalog,
    "IMPALA": ActorCriticCatalog,
    "MARWIL": ActorCriticCatalog,
    "SAC": SACCatalog,
    "CQL": SACCatalog,
    "DQN": DQNCatalog,
    "APEX": DQNCatalog,
    "BC": BCCatalog,
}


def begin_as_before(config: AlgorithmConfig) -> None:
    """Lets the default networks of a config begin as those of the old Rays, in place.

    Modules and catalogs of the user's own stay what they are, and so do converted networks.

    Args:
        config: A config of one of today's algorithms, on either API stack. If its LSTM is to see
            the step before (`lstm_use_prev_action`, `lstm_use_prev_reward`), it has the connector
            `PreviousSteps`, as translated configs have.
    """
    catalog = CATALOGS.get(config.algo_class.__name__)
    if catalog is not None and config.enable_rl_module_and_learner:
        ray_versions.set_catalog(config, catalog)
