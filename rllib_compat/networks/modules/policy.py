"""The module of evolution strategies whose output is the action itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tree
from gymnasium.vector.utils import batch_space
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.torch.torch_rl_module import TorchRLModule

from rllib_compat.networks.modules.actor_critic import ActorModule
from rllib_compat.networks.modules.distributions import Deterministic
from rllib_compat.neutral.public import public


@public("rllib_compat.modules")
class RandomModule(TorchRLModule):  # type: ignore[misc]  # Ray has no types
    """Draws each action from the action space, whatever it sees."""

    def setup(self) -> None:
        """Has nothing to build."""

    def _forward(self, batch: Mapping[str, Any], **_: Any) -> dict[str, Any]:
        count = len(tree.flatten(batch[Columns.OBS])[0])
        return {Columns.ACTIONS: batch_space(self.action_space, count).sample()}


@public("rllib_compat.modules")
class PolicyModule(ActorModule):
    """An `ActorModule` for Box actions, which nothing is drawn for."""

    def setup(self) -> None:
        """Builds the network; Ray calls it once."""
        super().setup()
        self.action_dist_cls = Deterministic

    def _forward(self, batch: dict[str, Any], **_: Any) -> dict[str, Any]:
        return self._named(self.net(self._inputs(batch)))
