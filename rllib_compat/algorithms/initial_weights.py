"""Today's actor-critic networks, with the weights that those of the old Rays began with."""

from __future__ import annotations

from typing import Any

from rllib_compat.algorithms.initial_networks import PPOCatalog
from rllib_compat.networks.modules.initial_weights import OF_A_HEAD, BeginsAsBefore


class ActorCriticCatalog(BeginsAsBefore, PPOCatalog):
    """Today's actor-critic networks, which begin as they did."""

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
