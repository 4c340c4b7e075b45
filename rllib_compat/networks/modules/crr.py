"""The module of CRR: a stochastic policy and two critics, each with a target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
import torch
from ray.rllib.core.columns import Columns
from torch import Tensor, nn

from rllib_compat.networks.modules.graph_module import ModuleWithTarget
from rllib_compat.networks.modules.layers import dense_layers
from rllib_compat.neutral.errors import ConfigError
from rllib_compat.neutral.public import public
from rllib_compat.ray_versions import modules


@public("rllib_compat.modules")
class CriticRegularizedModule(ModuleWithTarget):
    """A policy over Discrete or Box actions, and one critic or two.

    Of Discrete actions critics give a value each; Box actions are one of their inputs. The
    `model_config` has the keys of `CRRConfig` that say how large the networks are, and the
    `categorical_distribution_temperature`, by which logits are divided.
    """

    def setup(self) -> None:
        """Builds the networks; Ray calls it once."""
        told, space = self.model_config, self.action_space
        self.discrete = isinstance(space, gymnasium.spaces.Discrete)
        if not (self.discrete or isinstance(space, gymnasium.spaces.Box)):
            raise ConfigError(
                f"CRR has Discrete or Box actions, not {space}.",
                where="action_space",
                fix="Wrap the environment, so that its actions are one of both.",
            )
        self._temperature = told["categorical_distribution_temperature"]
        kind = "TorchCategorical" if self.discrete else "TorchDiagGaussian"
        self.action_dist_cls = getattr(modules.torch_distributions(), kind)
        inputs = int(np.prod(self.observation_space.shape))
        count = int(space.n) if self.discrete else int(np.prod(space.shape))
        hiddens, activation = told["actor_hiddens"], told["actor_hidden_activation"]
        outputs = count if self.discrete else 2 * count
        networks = {"actor": dense_layers(inputs, hiddens, outputs, activation)}
        if not self.inference_only:
            hiddens, activation = told["critic_hiddens"], told["critic_hidden_activation"]
            into, outputs = (inputs, count) if self.discrete else (inputs + count, 1)
            for name in ("q", "twin_q") if told["twin_q"] else ("q",):
                networks[name] = dense_layers(into, hiddens, outputs, activation)
        self.net = nn.ModuleDict(networks)

    def get_non_inference_attributes(self) -> list[str]:
        """What env runners do without."""
        return [*(f"net.{name}" for name in self.net if name != "actor"), "target_net"]

    def forward_target(self, batch: dict[str, Any]) -> dict[str, Any]:
        """What the targets' policy says; see `policy_of`."""
        return {Columns.ACTION_DIST_INPUTS: self._logits(self.target_net, batch)}

    def parameters_of(self, part: str) -> list[nn.Parameter]:
        """The parameters that one of the optimizers trains: `actor` or `critic`."""
        return [
            parameter
            for name, network in self.net.items()
            if (name == "actor") == (part == "actor")
            for parameter in network.parameters()
        ]

    def critics(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """What the critics say: `q_values`, and `twin_q_values` if there is a twin.

        Args:
            batch: `obs`, and `actions` where they are a Box.
        """
        actions = None if self.discrete else batch[Columns.ACTIONS]
        values = self.values_of(batch[Columns.OBS], actions)
        return dict(zip(("q_values", "twin_q_values"), values, strict=False))

    def policy_of(self, batch: Mapping[str, Any], *, target: bool = False) -> Any:
        """The distribution of actions, `torch.distributions`; of a Box, a normal for each part."""
        net = self.target_net if target else self.net
        logits = self._logits(net, batch)
        if self.discrete:
            return torch.distributions.Categorical(logits=logits, validate_args=False)
        mean, log_std = logits.chunk(2, dim=-1)
        return torch.distributions.Normal(mean, log_std.exp(), validate_args=False)

    def values_of(
        self, observations: Tensor, actions: Tensor | None = None, *, target: bool = False
    ) -> list[Tensor]:
        """What each critic says of actions, `[B]`; without actions, of all of them, `[B, n]`."""
        net, seen = self.target_net if target else self.net, observations.flatten(1).float()
        critics = [net[name] for name in ("q", "twin_q") if name in net]
        if not self.discrete:
            assert actions is not None, "critics take Box actions"
            together = torch.cat([seen, actions.flatten(1).float()], -1)
            return [critic(together).squeeze(-1) for critic in critics]
        values = [critic(seen) for critic in critics]
        if actions is None:
            return values
        return [value.gather(-1, actions.long().unsqueeze(-1)).squeeze(-1) for value in values]

    def _logits(self, net: nn.ModuleDict, batch: Mapping[str, Any]) -> Tensor:
        logits: Tensor = net["actor"](batch[Columns.OBS].flatten(1).float())
        return logits / self._temperature if self.discrete else logits

    def _forward(self, batch: dict[str, Any], **_: object) -> dict[str, Any]:
        return {Columns.ACTION_DIST_INPUTS: self._logits(self.net, batch)}
