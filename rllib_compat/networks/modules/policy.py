"""The module of evolution strategies whose output is the action itself."""

from __future__ import annotations

from typing import Any

from rllib_compat.networks.modules.actor_critic import ActorModule
from rllib_compat.networks.modules.distributions import Deterministic
from rllib_compat.neutral.public import public


@public("rllib_compat.modules")
class PolicyModule(ActorModule):
    """An `ActorModule` for Box actions, which nothing is drawn for."""

    def setup(self) -> None:
        """Builds the network; Ray calls it once."""
        super().setup()
        self.action_dist_cls = Deterministic

    def _forward(self, batch: dict[str, Any], **_: Any) -> dict[str, Any]:
        return self._named(self.net(self._inputs(batch)))
