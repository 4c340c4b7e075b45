"""The module of policies that give one action: DDPG, TD3 and APEX_DDPG."""

from __future__ import annotations

from typing import Any

from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.apis import InferenceOnlyAPI
from ray.rllib.core.rl_module.torch.torch_rl_module import TorchRLModule

from rllib_compat.networks.graph import Graph
from rllib_compat.networks.modules.distributions import Deterministic
from rllib_compat.networks.modules.graph_net import GraphNet
from rllib_compat.neutral.public import public

#: What only the critics give.
_CRITICS = ("q_values", "twin_q_values")


@public("rllib_compat.modules")
class DeterministicModule(TorchRLModule, InferenceOnlyAPI):  # type: ignore[misc]
    """Computes a legacy deterministic policy, and what its critics say.

    Its `model_config` holds the graph (`graph`, as `Graph.to_plain` makes it) and the shapes of
    its arrays (`shapes`, by name). Today's Ray has no learner for it.

    Actions are in the range that the policy was made for: that of the action space. Where the
    config said `normalize_actions`, the old Ray stretched them once more, as if they were within
    -1 … 1.
    """

    def setup(self) -> None:
        """Builds the network; Ray calls it once."""
        self.graph = Graph.from_plain(self.model_config["graph"])
        shapes = self.model_config["shapes"]
        if self.inference_only:
            kept = {step.name for step in self.graph.needed([Columns.ACTIONS])}
            shapes = {k: v for k, v in shapes.items() if k.rpartition(".")[0] in kept}
        self.net = GraphNet(self.graph, shapes)
        self.action_dist_cls = Deterministic

    def get_non_inference_attributes(self) -> list[str]:
        """The layers that only the critics have: env runners do without them."""
        return [f"net.{step}" for step in self.net.only_for(_CRITICS)]

    def _forward(self, batch: dict[str, Any], **_: Any) -> dict[str, Any]:
        actions = self.net({"obs": batch[Columns.OBS]}, [Columns.ACTIONS])[Columns.ACTIONS]
        return {Columns.ACTIONS: actions, Columns.ACTION_DIST_INPUTS: actions}

    def critics(self, batch: dict[str, Any]) -> dict[str, Any]:
        """What the critics say: `q_values` `[B]`, and `twin_q_values` if there is a twin.

        Args:
            batch: `obs`, and `actions` `[B, n]` in the range of the action space.
        """
        outputs = [name for name in _CRITICS if name in self.graph.outputs]
        inputs = {name: batch[name] for name in self.graph.inputs}
        return dict(self.net(inputs, outputs))
