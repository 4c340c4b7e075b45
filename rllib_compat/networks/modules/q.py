"""The module of DQN with legacy Q-networks, which today's learner trains.

It is today's default module with another network: how actions are chosen and what a training step
takes is the installed Ray's own code.
"""

from __future__ import annotations

from typing import Any

import torch
from ray.rllib.core.columns import Columns
from ray.rllib.core.learner.utils import make_target_network
from ray.rllib.core.rl_module.torch.torch_rl_module import TorchRLModule
from ray.rllib.utils.schedules.scheduler import Scheduler
from torch import nn

from rllib_compat.networks.graph import Graph
from rllib_compat.networks.modules.exploring_q import ATOMS, QF_LOGITS, QF_PREDS, QF_PROBS, Explores
from rllib_compat.networks.modules.graph_net import GraphNet, inputs_in
from rllib_compat.networks.modules.sac import NoCatalog
from rllib_compat.neutral.public import public
from rllib_compat.ray_versions import modules

#: What a graph gives.
VALUES, LOGITS = "q_values", "q_logits"

_DQN: Any = modules.dqn_module()


@public("rllib_compat.modules")
class QModule(Explores, _DQN):  # type: ignore[misc]  # Ray has no types
    """Computes a legacy Q-network and its target network.

    Its `model_config` holds the graph (`graph`, as `Graph.to_plain` makes it), the shapes of its
    arrays (`shapes`, by name), DQN's own `double_q`, `num_atoms`, `v_min`, `v_max` and `epsilon`,
    and what `Explores` takes.

    A batch has `obs` `[B, …]`; with states `[B, T, …]` and `state_in`, a dict of `[B, …]`. What a
    network takes beside the observation is found as `graph_net.inputs_in` tells.
    """

    def __init__(self, *args: Any, catalog_class: Any = None, **kwargs: Any) -> None:  # noqa: ARG002 (the graph tells the network, no catalog chooses it)
        TorchRLModule.__init__(self, *args, catalog_class=NoCatalog, **kwargs)

    def setup(self) -> None:
        """Builds the network; Ray calls it once."""
        config = self.model_config
        self.graph = Graph.from_plain(config["graph"])
        self.net = GraphNet(self.graph, config["shapes"])
        self.uses_double_q = config["double_q"]
        self.num_atoms = config["num_atoms"]
        self.uses_noisy = False  # Ray 2.40 asks, for layers of its own
        self.epsilon_schedule = Scheduler(
            fixed_value_or_schedule=config.get("epsilon", 0.0), framework="torch"
        )
        self.action_dist_cls = modules.action_distribution(self.action_space)

    def perturbed(self) -> list[nn.Parameter]:
        """The network's weights."""
        return self.net.without_norms()

    def get_initial_state(self) -> dict[str, Any]:
        """Zeros for each state; nothing for a network without states."""
        return {name: torch.zeros(self.graph.inputs[name]) for name in self.graph.states}

    def get_non_inference_attributes(self) -> list[str]:
        """What env runners do without."""
        return ["target_net"]

    def make_target_networks(self) -> None:
        """Makes the target network, equal to the network; a learner calls it."""
        self.target_net = make_target_network(self.net)

    def get_target_network_pairs(self) -> list[tuple[nn.Module, nn.Module]]:
        """The network, with the one that follows it."""
        return [(self.net, self.target_net)]

    def compute_q_values(self, batch: dict[str, Any]) -> dict[str, Any]:
        """The Q-values `qf_preds` `[B, actions]`, and their distributions if they have any."""
        return self._compute(self.net, batch)

    _qf = compute_q_values  # its name in Ray 2.40

    def forward_target(self, batch: dict[str, Any]) -> dict[str, Any]:
        """The same of the target network."""
        return self._compute(self.target_net, batch)

    def critics(self, batch: dict[str, Any]) -> dict[str, Any]:
        """What the graph itself gives."""
        made: dict[str, Any] = self.net(inputs_in(self.graph, batch), self.graph.outputs)
        return made

    def _compute(self, net: GraphNet, batch: dict[str, Any]) -> dict[str, Any]:
        out = net(inputs_in(self.graph, batch))
        made = {QF_PREDS: out[VALUES].float()}
        if LOGITS in out:
            logits = out[LOGITS].float()
            low, high, atoms = (self.model_config[k] for k in ("v_min", "v_max", "num_atoms"))
            support = torch.linspace(low, high, atoms, device=logits.device)
            made |= {QF_LOGITS: logits, QF_PROBS: torch.softmax(logits, dim=-1), ATOMS: support}
        if self.graph.states:
            made[Columns.STATE_OUT] = {name: out[name] for name in self.graph.states}
        return made

    def _forward_inference(self, batch: dict[str, Any], **_: Any) -> dict[str, Any]:
        out = self.compute_q_values(batch)
        actions = {Columns.ACTIONS: out[QF_PREDS].argmax(dim=-1)}
        return actions | {k: v for k, v in out.items() if k == Columns.STATE_OUT}
