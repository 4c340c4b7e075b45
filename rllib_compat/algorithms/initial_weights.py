"""The weights that networks of the old Rays began with (`normc_initializer`, heads near zero)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from ray.rllib.algorithms.ppo.ppo_catalog import PPOCatalog

#: The norm of the weights of each unit of a head.
OF_A_HEAD = 0.01


def begun(network: Any, last: float | None = 1.0) -> Any:
    """Draws the weights of dense layers: those of each unit have the norm 1.

    Args:
        network: What has the layers.
        last: The norm in its last layer; None: that one is drawn after Glorot, as behind an LSTM.
    """
    layers = [layer for layer in network.modules() if isinstance(layer, torch.nn.Linear)]
    with torch.no_grad():
        for layer in layers:
            norm = last if layer is layers[-1] else 1.0
            if norm is None:
                torch.nn.init.xavier_uniform_(layer.weight)
            else:
                drawn = torch.randn_like(layer.weight)
                layer.weight.copy_(norm * drawn / drawn.norm(dim=1, keepdim=True))
            if layer.bias is not None:
                layer.bias.zero_()
    return network


class BeginsAsBefore:
    """The first base of a catalog whose networks begin as they did.

    Where the model config says how weights are drawn, that is how.
    """

    _model_config_dict: Mapping[str, Any]

    def _begun(self, made: Any, last: float | None = 1.0) -> Any:
        """A network with its first weights; see `begun`."""
        names = ("fcnet_kernel_initializer", "head_fcnet_kernel_initializer")
        drawn_by_ray = any(map(self._model_config_dict.get, names))
        return made if drawn_by_ray else begun(made, last)


class ActorCriticCatalog(BeginsAsBefore, PPOCatalog):  # type: ignore[misc]  # Ray has no types
    """Today's actor-critic networks, which begin as they did."""

    #: What builds the same for a network whose weights are there already.
    of_ray: ClassVar[type] = PPOCatalog

    def build_actor_critic_encoder(self, framework: str) -> Any:
        """The hidden layers of actor and critic."""
        return self._begun(super().build_actor_critic_encoder(framework))

    def build_pi_head(self, framework: str) -> Any:
        """The actor's last layer."""
        return self._begun(super().build_pi_head(framework), self._of_a_head)

    def build_vf_head(self, framework: str) -> Any:
        """The critic's last layer."""
        return self._begun(super().build_vf_head(framework), self._of_a_head)

    @property
    def _of_a_head(self) -> float | None:
        return None if self._model_config_dict.get("use_lstm") else OF_A_HEAD
