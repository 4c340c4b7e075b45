"""The weights that networks of the old Rays began with (`normc_initializer`, heads near zero)."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from ray.rllib.algorithms.ppo.ppo_catalog import PPOCatalog

#: The norm of the weights of each unit of a head.
OF_A_HEAD = 0.01


def begun(network: Any, last: float = 1.0) -> Any:
    """Draws the weights of dense layers: those of each unit have the norm 1.

    Args:
        network: What has the layers.
        last: The norm in its last layer.
    """
    layers = [layer for layer in network.modules() if isinstance(layer, torch.nn.Linear)]
    with torch.no_grad():
        for layer in layers:
            drawn = torch.randn_like(layer.weight)
            norm = last if layer is layers[-1] else 1.0
            layer.weight.copy_(norm * drawn / drawn.norm(dim=1, keepdim=True))
            if layer.bias is not None:
                layer.bias.zero_()
    return network


class ActorCriticCatalog(PPOCatalog):  # type: ignore[misc]  # Ray has no types
    """Today's actor-critic networks, which begin as they did.

    Where the model config says how weights are drawn, that is how.
    """

    #: What builds the same for a network whose weights are there already.
    of_ray: ClassVar[type] = PPOCatalog

    def __init__(self, observation_space: Any, action_space: Any, model_config_dict: Any) -> None:
        names = ("fcnet_kernel_initializer", "head_fcnet_kernel_initializer")
        self._drawn_by_ray = any(map(model_config_dict.get, names))
        super().__init__(observation_space, action_space, model_config_dict)

    def build_actor_critic_encoder(self, framework: str) -> Any:
        """The hidden layers of actor and critic."""
        made = super().build_actor_critic_encoder(framework)
        return made if self._drawn_by_ray else begun(made)

    def build_pi_head(self, framework: str) -> Any:
        """The actor's last layer."""
        made = super().build_pi_head(framework)
        return made if self._drawn_by_ray else begun(made, OF_A_HEAD)

    def build_vf_head(self, framework: str) -> Any:
        """The critic's last layer."""
        made = super().build_vf_head(framework)
        return made if self._drawn_by_ray else begun(made, OF_A_HEAD)
