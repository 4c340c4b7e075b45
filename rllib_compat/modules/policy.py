"""The module of a policy without a value function: evolution strategies, and PG up to Ray 0.7."""

from __future__ import annotations

from typing import Any

from ray.rllib.core.columns import Columns
from ray.rllib.core.distribution.torch.torch_distribution import TorchDeterministic
from ray.rllib.core.models.catalog import Catalog
from ray.rllib.core.rl_module.torch.torch_rl_module import TorchRLModule

from rllib_compat.modules.graph_net import GraphNet
from rllib_compat.networks.graph import Graph


class PolicyModule(TorchRLModule):  # type: ignore[misc]  # Ray has no types
    """Computes a legacy policy network.

    Its `model_config` holds the graph (`graph`, as `Graph.to_plain` makes it), the shapes of its
    arrays (`shapes`, by name), and `deterministic`: whether a Box action is the output itself.
    """

    def setup(self) -> None:
        """Builds the network; Ray calls it once."""
        self.graph = Graph.from_plain(self.model_config["graph"])
        self.net = GraphNet(self.graph, self.model_config["shapes"])
        if self.model_config["deterministic"]:
            self.action_dist_cls = TorchDeterministic
        else:
            self.action_dist_cls = Catalog._get_dist_cls_from_action_space(
                action_space=self.action_space, framework="torch"
            )

    def _forward(self, batch: dict[str, Any], **_: Any) -> dict[str, Any]:
        return self.net({"obs": batch[Columns.OBS]})
