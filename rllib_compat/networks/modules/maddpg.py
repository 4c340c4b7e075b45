"""The module of MADDPG: an actor that sees its own agent, a critic that sees all of them.

Lowe et al., "Multi-agent actor-critic for mixed cooperative-competitive environments" (2017).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import gymnasium
import torch
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.columns import Columns
from torch import Tensor, nn

from rllib_compat.networks.graph import EVERYONE as EVERYONE
from rllib_compat.networks.modules.distributions import Deterministic
from rllib_compat.networks.modules.graph_module import ModuleWithTarget
from rllib_compat.networks.modules.layers import dense_layers
from rllib_compat.neutral.errors import ConfigError
from rllib_compat.neutral.public import public

#: What `_forward_train` calls the critic's opinion of the replayed actions, and of those in which
#: the agent's own is the one that the actor would take now.
Q, Q_OF_POLICY = "q", "q_of_policy"


@public("rllib_compat.modules")
class MADDPGModule(ModuleWithTarget):
    """A stochastic actor of one agent, a critic, and targets of both.

    Actions are points of a simplex, one number for each Discrete action or each part of a Box:
    relaxed one-hot samples (Gumbel-softmax) of temperature 1. The `model_config` has the keys of
    `MADDPGConfig` that say how large the networks are, and what only all agents together tell:
    `agent` (this module's id), `critic_sees` (the modules whose observations and actions the critic
    sees, in order) and `critic_inputs` (how many numbers these are).
    """

    def setup(self) -> None:
        """Builds the networks; Ray calls it once."""
        told = self.model_config
        seen, acted = observed(self.observation_space), simplex(self.action_space)
        hiddens, activation = told["actor_hiddens"], told["actor_hidden_activation"]
        self.net = nn.ModuleDict({"actor": dense_layers(seen, hiddens, acted, activation)})
        if not self.inference_only:
            inputs = told.get("critic_inputs", seen + acted)
            hiddens, activation = told["critic_hiddens"], told["critic_hidden_activation"]
            self.net["critic"] = dense_layers(inputs, hiddens, 1, activation)
        self.agent = told.get("agent", DEFAULT_MODULE_ID)
        self.critic_sees = told.get("critic_sees", [self.agent])
        self.action_dist_cls = Deterministic

    def get_non_inference_attributes(self) -> list[str]:
        """What env runners do without."""
        return ["net.critic", "target_net"]

    def parameters_of(self, part: str) -> list[nn.Parameter]:
        """The parameters that one of the optimizers trains: `actor` or `critic`."""
        return list(self.net[part].parameters())

    def forward_target(self, batch: dict[str, Any]) -> dict[str, Any]:
        """What the target of the actor does: `actions`, sampled."""
        return self._acting(self.target_net, batch)

    def critics(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """What the critic says, `q_values` `[B]`.

        Args:
            batch: Under `everyone`, what it sees of all agents, in one vector each step.
        """
        return {"q_values": self.net["critic"](batch[EVERYONE].float()).squeeze(-1)}

    def target_value(self, observations: Iterable[Tensor], actions: Iterable[Tensor]) -> Tensor:
        """What the target of the critic says, `[B]`, of what it sees of all agents."""
        critic = self.target_net["critic"]
        value: Tensor = critic(_together(observations, actions)).squeeze(-1)
        return value

    def _forward(self, batch: dict[str, Any], **_: object) -> dict[str, Any]:
        return self._acting(self.net, batch)

    def _forward_train(self, batch: dict[str, Any], **_: object) -> dict[str, Any]:
        out = self._acting(self.net, batch)
        everyone = batch[EVERYONE]
        seen = [everyone[agent][Columns.OBS] for agent in self.critic_sees]
        acted = {agent: everyone[agent][Columns.ACTIONS] for agent in self.critic_sees}
        critic = self.net["critic"]
        # Through the critic, but not into it: it learns from its own loss alone.
        fixed = {name: weight.detach() for name, weight in critic.named_parameters()}
        now = _together(seen, {**acted, self.agent: out[Columns.ACTIONS]}.values())
        return {
            **out,
            Q: critic(_together(seen, acted.values())).squeeze(-1),
            Q_OF_POLICY: torch.func.functional_call(critic, fixed, (now,)).squeeze(-1),
        }

    def _acting(self, net: nn.ModuleDict, batch: Mapping[str, Any]) -> dict[str, Any]:
        """Actions, and the logits that they are sampled from; also where nothing explores."""
        logits = net["actor"](batch[Columns.OBS].float())
        actions = torch.softmax(logits + _gumbel(logits), -1)
        return {Columns.ACTIONS: actions, Columns.ACTION_DIST_INPUTS: logits}


def observed(space: gymnasium.Space[Any]) -> int:
    """How many numbers an agent observes.

    Raises:
        ConfigError: They are no vector.
    """
    shape = getattr(space, "shape", None)
    if not isinstance(space, gymnasium.spaces.Box) or shape is None or len(shape) != 1:
        raise ConfigError(
            f"The agents of MADDPG observe vectors, not {space}.",
            where="observation_space",
            fix="Put FlattenObservations(multi_agent=True) into the env_to_module_connector.",
        )
    return int(shape[0])


def simplex(space: gymnasium.Space[Any]) -> int:
    """How many numbers an action has.

    Raises:
        ConfigError: The space is neither Discrete nor a Box that is a vector.
    """
    if isinstance(space, gymnasium.spaces.Discrete):
        return int(space.n)
    if isinstance(space, gymnasium.spaces.Box) and len(space.shape) == 1:
        return int(space.shape[0])
    raise ConfigError(
        f"The agents of MADDPG have Discrete actions or a vector (Box), not {space}.",
        where="action_space",
        fix="Wrap the environment, so that its actions are one of both.",
    )


def _together(observations: Iterable[Tensor], actions: Iterable[Tensor]) -> Tensor:
    return torch.cat([*observations, *actions], -1).float()


def _gumbel(logits: Tensor) -> Tensor:
    """Standard Gumbel noise in the shape of some logits."""
    smallest = torch.finfo(logits.dtype).tiny
    uniform = torch.rand_like(logits).clamp(min=smallest)
    return -torch.log(-torch.log(uniform))
