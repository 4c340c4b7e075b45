"""The modules of policies with an action distribution that today's default can't represent."""

from __future__ import annotations

from typing import Any

import torch
from ray.rllib.core.columns import Columns
from ray.rllib.core.learner.utils import make_target_network
from ray.rllib.core.rl_module.apis import InferenceOnlyAPI, TargetNetworkAPI, ValueFunctionAPI
from ray.rllib.core.rl_module.torch.torch_rl_module import TorchRLModule

from rllib_compat.networks.graph import Graph
from rllib_compat.networks.modules.graph_net import GraphNet, inputs_in
from rllib_compat.neutral.public import public
from rllib_compat.ray_versions import modules

LOGITS, VALUES = "action_dist_inputs", "vf_preds"


@public("rllib_compat.modules")
class ActorModule(TorchRLModule, InferenceOnlyAPI):  # type: ignore[misc]  # Ray has no types
    """Computes a legacy policy network without a value function (PG).

    Its `model_config` holds the graph (`graph`, as `Graph.to_plain` makes it), the shapes of its
    arrays (`shapes`, by name), and for a network with states `max_seq_len`, the length of the
    sequences that it is trained on.

    A batch has `obs` `[B, …]`. With states it has `obs` `[B, T, …]` and `state_in`, a dict of
    `[B, …]`; the answer then has `state_out`. Where the network takes more than the observation
    (`prev_actions` `[B, T, k]`, flattened and as they were taken, `prev_rewards` `[B, T, n]`),
    that stands beside `obs` in the batch, or `obs` is one vector of all of them, as
    `rllib_compat.runtime.observation_connectors` makes it in env runners.
    """

    def setup(self) -> None:
        """Builds the network; Ray calls it once."""
        self.graph = Graph.from_plain(self.model_config["graph"])
        self._acting = self._outputs_of_acting()
        shapes = self.model_config["shapes"]
        if self.inference_only:
            kept = {step.name for step in self.graph.needed(self._acting)}
            shapes = {k: v for k, v in shapes.items() if k.rpartition(".")[0] in kept}
        self.net = GraphNet(self.graph, shapes)
        self.action_dist_cls = modules.action_distribution(self.action_space)

    def get_initial_state(self) -> dict[str, Any]:
        """Zeros for each state; nothing for a network without states."""
        return {name: torch.zeros(self.graph.inputs[name]) for name in self.graph.states}

    def get_non_inference_attributes(self) -> list[str]:
        """The layers that only the value function has: env runners do without them."""
        if VALUES in self._acting:
            return []
        return [f"net.{step}" for step in self.net.only_for([VALUES])]

    def _outputs_of_acting(self) -> list[str]:
        """What is computed when it acts: logits, and values where these have states of their own.

        Learners begin sequences with all states, and env runners make them.
        """
        reached = {step.name for step in self.graph.needed([LOGITS])}
        own = [s for s in self.graph.states.values() if s.rpartition(".")[0] not in reached]
        return [LOGITS, VALUES] if own else [LOGITS]

    def _forward(self, batch: dict[str, Any], **_: Any) -> dict[str, Any]:
        out = self.net(self._inputs(batch), self._acting)
        out.pop(VALUES, None)
        return self._named(out)

    def _inputs(self, batch: dict[str, Any]) -> dict[str, Any]:
        return inputs_in(self.graph, batch)

    def _named(self, out: dict[str, Any]) -> dict[str, Any]:
        states = {name: out.pop(name) for name in self.graph.states}
        return {**out, **({Columns.STATE_OUT: states} if states else {})}


@public("rllib_compat.modules")
class ActorCriticModule(ActorModule, ValueFunctionAPI):  # type: ignore[misc]
    """Computes a legacy policy network and its value function.

    It is what `Algorithm.from_checkpoint` and `RLModule.from_checkpoint` build for a converted
    checkpoint.
    """

    def compute_values(self, batch: dict[str, Any], embeddings: Any = None) -> Any:  # noqa: ARG002 (Ray passes it by name)
        """The value predictions `[B]`, or `[B, T]` for a network with states."""
        return self.net(self._inputs(batch), [VALUES])[VALUES]


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
        return {modules.target_network_logits(): out[LOGITS]}
