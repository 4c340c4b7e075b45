"""The module of APPO: a policy with a target network."""

from __future__ import annotations

from typing import Any

from ray.rllib.core.learner.utils import make_target_network
from ray.rllib.core.rl_module.apis import TargetNetworkAPI

from rllib_compat import ray_versions
from rllib_compat.networks.modules.actor_critic import LOGITS, ActorCriticModule
from rllib_compat.neutral.public import public


@public("rllib_compat.modules")
class AsynchronousModule(ActorCriticModule, TargetNetworkAPI):  # type: ignore[misc]  # no types
    """An `ActorCriticModule` that APPO can train."""

    def make_target_networks(self) -> None:
        """Copies the network; Ray's learner calls it."""
        self.target_net = make_target_network(self.net)

    def get_target_network_pairs(self) -> list[tuple[Any, Any]]:
        """The network and its copy."""
        return [(self.net, self.target_net)]

    def get_non_inference_attributes(self) -> list[str]:
        """Env runners do without the target network, too."""
        return [*super().get_non_inference_attributes(), "target_net"]

    def forward_target(self, batch: dict[str, Any]) -> dict[str, Any]:
        """What the target network gives for a batch."""
        out = self.target_net(self._inputs(batch), [LOGITS])
        return {ray_versions.target_network_logits(): out[LOGITS]}
