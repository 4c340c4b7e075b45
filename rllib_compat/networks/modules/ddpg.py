"""The module of policies that give one action: DDPG, TD3 and APEX_DDPG."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from ray.rllib.core.columns import Columns
from torch import nn

from rllib_compat.networks.families import ddpg
from rllib_compat.networks.graph import CRITIC, POLICY, STATE, TWIN, Graph
from rllib_compat.networks.modules.configured import begin, new_network
from rllib_compat.networks.modules.distributions import Deterministic
from rllib_compat.networks.modules.exploration import Noise, Perturbed, root_mean_square
from rllib_compat.networks.modules.graph_module import GraphNet, ModuleWithTarget
from rllib_compat.neutral.public import public

#: What only the critics give.
_CRITICS = ("q_values", "twin_q_values")

#: What the actor's loss and the critics' loss train. What comes before both (`state`), neither
#: does: so it was in every Ray that had it.
_ACTOR = (POLICY, f"{POLICY}_{STATE}")
_CRITIC = (CRITIC, TWIN, f"{CRITIC}_{STATE}")

#: What `_forward_train` calls the critic's opinion of the policy's own actions.
Q_OF_POLICY = "q_of_policy"


@public("rllib_compat.modules")
class DeterministicModule(Perturbed, ModuleWithTarget):
    """A deterministic policy with one critic or two, and targets of all of them.

    The `model_config` of a converted one holds the graph (`graph`, as `Graph.to_plain` makes it)
    and the shapes of its arrays (`shapes`, by name). A new one is made from the keys of a
    `DDPGConfig`. Where there is an `exploration_noise`, it explores with that; where there is
    `parameter_noise`, with noise on its weights, too.

    Actions are in the range that the policy was made for: that of the action space. Where the
    config said `normalize_actions`, the old Ray stretched them once more, as if they were within
    -1 … 1.
    """

    def setup(self) -> None:
        """Builds the network; Ray calls it once."""
        told, new = self.model_config, None
        if "graph" not in told:
            settings = ddpg.settings_of(told)
            new = new_network(settings, self.observation_space, self.action_space)
            told = new.target.model_config
        self.graph = Graph.from_plain(told["graph"])
        wanted = [Columns.ACTIONS] if self.inference_only else None
        self.net = GraphNet(self.graph, told["shapes"], wanted)
        if new is not None:
            begin(self, new)
        for stack, part in self.net.named_children():
            part.requires_grad_(stack in (*_ACTOR, *_CRITIC))
        noise = self.model_config.get("exploration_noise")
        self._noise = Noise(noise, self.action_space) if noise else None
        self.action_dist_cls = Deterministic

    def get_non_inference_attributes(self) -> list[str]:
        """The layers that only the critics have, and the targets: env runners do without them."""
        return [*(f"net.{step}" for step in self.net.only_for(_CRITICS)), "target_net"]

    def parameters_of(self, part: str) -> list[nn.Parameter]:
        """The parameters that one of the optimizers trains: `actor` or `critic`."""
        stacks = {"actor": _ACTOR, "critic": _CRITIC}[part]
        children = dict(self.net.named_children())
        return [p for s in stacks if s in children for p in children[s].parameters()]

    def regularized(self, part: str) -> list[nn.Parameter]:
        """Those of them that `l2_reg` makes smaller: all but biases."""
        biases = {id(p) for name, p in self.net.named_parameters() if _is_bias(name)}
        return [p for p in self.parameters_of(part) if id(p) not in biases]

    def scale_noise(self, scale: float) -> None:
        """Lets it explore with noise of one scale, whatever was sampled."""
        if self._noise is not None:
            self._noise.fixed_scale = scale

    def perturbed(self) -> list[nn.Parameter]:
        """The weights that actions are computed with."""
        return self.net.without_norms([Columns.ACTIONS])

    def actions_of(self, batch: Mapping[str, Any]) -> torch.Tensor:
        """The policy's own actions."""
        actions: torch.Tensor = self.net({"obs": self._seen(batch)}, [Columns.ACTIONS])["actions"]
        return actions

    def moved_and_wanted(self, clean: torch.Tensor, noisy: torch.Tensor) -> tuple[float, float]:
        """What noise on weights did to actions, and what that on actions does."""
        return root_mean_square(clean, noisy), self._noise.deviation if self._noise else 0.0

    def _forward(self, batch: dict[str, Any], **_: object) -> dict[str, Any]:
        actions = self.actions_of(batch)
        return {Columns.ACTIONS: actions, Columns.ACTION_DIST_INPUTS: actions}

    def _forward_exploration(
        self, batch: dict[str, Any], t: int = 0, **_: object
    ) -> dict[str, Any]:
        with self.with_weight_noise():
            out = self._forward(batch)
        if self._noise is None:
            return out
        actions = self._noise(out[Columns.ACTIONS], t)
        return {Columns.ACTIONS: actions, Columns.ACTION_DIST_INPUTS: actions}

    def _forward_train(self, batch: dict[str, Any], **_: object) -> dict[str, Any]:
        own = {"obs": self._seen(batch)}
        actions = self._forward(batch)[Columns.ACTIONS]
        # Through the critic, but not into it: it learns from its own loss alone.
        fixed = {
            name: parameter.detach()
            for name, parameter in self.net.named_parameters()
            if name.partition(".")[0] not in _ACTOR
        }
        told = torch.func.functional_call(
            self.net, fixed, ({**own, "actions": actions}, [_CRITICS[0]])
        )
        return {**self.critics(batch), Q_OF_POLICY: told[_CRITICS[0]]}

    def forward_target(self, batch: dict[str, Any]) -> dict[str, Any]:
        """What the targets say: `actions`; where the batch has those, `q_values` of them."""
        return self._ask(self.target_net, batch)

    def critics(self, batch: dict[str, Any]) -> dict[str, Any]:
        """What the critics say: `q_values` `[B]`, and `twin_q_values` if there is a twin.

        Args:
            batch: `obs`, and `actions` `[B, n]` in the range of the action space.
        """
        return self._ask(self.net, batch)

    def _ask(self, net: GraphNet, batch: Mapping[str, Any]) -> dict[str, Any]:
        inputs = {"obs": self._seen(batch)}
        if Columns.ACTIONS not in batch:
            return dict(net(inputs, [Columns.ACTIONS]))
        outputs = [name for name in _CRITICS if name in self.graph.outputs]
        return dict(net({**inputs, "actions": batch[Columns.ACTIONS]}, outputs))

    def _seen(self, batch: Mapping[str, Any]) -> Any:
        """The observations, as vectors where the network takes vectors."""
        seen = batch[Columns.OBS]
        return seen.flatten(1) if len(self.graph.inputs["obs"]) == 1 else seen


def _is_bias(name: str) -> bool:
    stack, _, part = name.rpartition(".")
    return part == "bias" or (part == "beta" and ".norm." in stack)
