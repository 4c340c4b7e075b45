"""The modules of SAC and CQL with legacy networks, which today's learners train.

They are today's default modules with other networks: what a training step computes from the
outputs of policy, critics and targets (samples, log probabilities, the smaller of two critics) is
the installed Ray's own code.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gymnasium.spaces import Discrete
from ray.rllib.algorithms.sac.sac_learner import QF_PREDS, QF_TWIN_PREDS
from ray.rllib.core.columns import Columns
from ray.rllib.core.models.base import ENCODER_OUT
from torch import nn

from rllib_compat.networks.graph import CRITIC, POLICY, STATE, TWIN, Graph
from rllib_compat.networks.modules.distributions import distribution
from rllib_compat.networks.modules.graph_module import GraphNet
from rllib_compat.neutral.public import public
from rllib_compat.ray_versions import modules

LOGITS, Q_VALUES, TWIN_Q_VALUES = "action_dist_inputs", "q_values", "twin_q_values"

_SAC, _CQL = modules.soft_actor_critic_modules()


@public("rllib_compat.modules")
class NoCatalog:
    """Takes the place of a catalog: these networks are given, not chosen."""

    def __init__(self, **_: object) -> None:
        pass

    def get_action_dist_cls(self, **_: object) -> None:
        """None; the module's config has the distribution."""


class Part:
    """One stack of a network, as Ray's modules call what they have as an encoder.

    Args:
        net: The whole network; its parameters stay its own.
        stack: The stack whose parameters an optimizer gets.
        output: What the network gives with it.
    """

    def __init__(self, net: GraphNet, stack: str, output: str) -> None:
        self._net, self._stack, self._output = net, stack, output

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Its output for a batch, under the name that Ray looks for."""
        inputs = {name: batch[name] for name in self._net.graph.inputs if name in batch}
        return {ENCODER_OUT: self._net(inputs, [self._output])[self._output]}

    def parameters(self) -> Iterator[nn.Parameter]:
        parameters: Iterator[nn.Parameter] = getattr(self._net, self._stack).parameters()
        return parameters


class Nothing:
    """The head behind a `Part`, which has its own last layer already."""

    def __call__(self, value: object) -> Any:
        """The value as it came."""
        return value

    def parameters(self) -> Iterator[nn.Parameter]:
        return iter(())


class LegacyNetworks:
    """What replaces the networks of Ray's modules.

    `model_config` holds the graph (`graph`, as `Graph.to_plain` makes it), the shapes of its
    arrays (`shapes`, by name), the `distribution` of actions, and `twin_q`.
    """

    model_config: dict[str, Any]
    action_space: Any
    inference_only: bool
    net: GraphNet
    target_net: GraphNet

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **{**kwargs, "catalog_class": NoCatalog})

    def setup(self) -> None:
        self.graph = Graph.from_plain(self.model_config["graph"])
        self.twin_q = self.model_config["twin_q"]
        self.action_dist_cls = distribution(**self.model_config["distribution"])
        self.net = self._net([LOGITS] if self.inference_only else [*self.graph.outputs])
        self.pi_encoder, self.pi = Part(self.net, POLICY, LOGITS), Nothing()
        if not self.inference_only:
            self.qf_encoder, self.qf = Part(self.net, CRITIC, Q_VALUES), Nothing()
        if self.twin_q and not self.inference_only:
            self.qf_twin_encoder, self.qf_twin = Part(self.net, TWIN, TWIN_Q_VALUES), Nothing()

    def _net(self, outputs: list[str]) -> GraphNet:
        """A network of the graph's layers that some outputs depend on."""
        return GraphNet(self.graph, self.model_config["shapes"], outputs)

    def make_target_networks(self) -> None:
        """Makes the critics' targets, equal to the critics; a learner calls it."""
        net = self._net([k for k in (Q_VALUES, TWIN_Q_VALUES) if k in self.graph.outputs])
        ours = self.net.state_dict()
        net.load_state_dict({name: ours[name] for name in net.state_dict()})
        net.requires_grad_(False).to(next(self.net.parameters()).device)
        self.target_net = net
        self.target_qf_encoder, self.target_qf = Part(net, CRITIC, Q_VALUES), Nothing()
        if self.twin_q:
            self.target_qf_twin_encoder = Part(net, TWIN, TWIN_Q_VALUES)
            self.target_qf_twin = Nothing()

    def get_target_network_pairs(self) -> list[tuple[nn.Module, nn.Module]]:
        """Each network with the one that follows it."""
        both = (self.net, self.target_net)
        return [
            (getattr(both[0], stack), getattr(both[1], stack))
            for stack in (STATE, CRITIC, TWIN)
            if all(hasattr(net, stack) for net in both)
        ]

    def get_non_inference_attributes(self) -> list[str]:
        return [f"net.{CRITIC}", f"net.{TWIN}", "target_net"]

    def critics(self, batch: dict[str, Any]) -> dict[str, Any]:
        """What critics say of `obs`, and of continuous `actions`: `q_values`, `twin_q_values`."""
        inputs = {name: batch[name] for name in self.graph.inputs}
        outputs = [k for k in (Q_VALUES, TWIN_Q_VALUES) if k in self.graph.outputs]
        return dict(self.net(inputs, outputs))

    def _qf_forward_train_helper(
        self,
        batch: dict[str, Any],
        encoder: Part,
        head: Nothing,  # noqa: ARG002 (Ray passes it)
        squeeze: bool = True,  # noqa: ARG002 (Ray passes it; the graph has the right shape)
    ) -> Any:
        return encoder(batch)[ENCODER_OUT]

    def _forward_train(self, batch: dict[str, Any]) -> dict[str, Any]:
        """What the losses are made of; of discrete actions, which Ray learns since 2.48, too."""
        if isinstance(self.action_space, Discrete):
            return self._all_actions(batch)
        out: dict[str, Any] = super()._forward_train(batch)  # type: ignore[misc]
        return out

    def _all_actions(self, batch: dict[str, Any]) -> dict[str, Any]:
        """What policy and critics say of each action, now and in the next observations."""
        now, after = ({Columns.OBS: batch[key]} for key in (Columns.OBS, Columns.NEXT_OBS))
        said = self.critics(now)
        out = {QF_PREDS: said[Q_VALUES], QF_TWIN_PREDS: said.get(TWIN_Q_VALUES, said[Q_VALUES])}
        out["q_target_next"] = self.forward_target(after)  # type: ignore[attr-defined]
        for when, seen in (("", now), ("_next", after)):
            logps = self.net(seen, [LOGITS])[LOGITS].log_softmax(-1)
            out |= {f"action_log_probs{when}": logps, f"action_probs{when}": logps.exp()}
        return out


@public("rllib_compat.modules")
class SACModule(LegacyNetworks, _SAC):  # type: ignore[misc, valid-type]
    """SAC with legacy networks."""


@public("rllib_compat.modules")
class CQLModule(LegacyNetworks, _CQL):  # type: ignore[misc, valid-type]
    """CQL with legacy networks; `model_config` holds `num_actions`, too."""
