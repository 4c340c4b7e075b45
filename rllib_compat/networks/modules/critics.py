"""The modules of a policy and critics that are trained apart: DDPG, TD3, CRR and MADDPG."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import gymnasium
import torch
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.columns import Columns
from torch import Tensor, nn

from rllib_compat.networks.graph import CRITIC, EVERYONE, POLICY, STATE, TWIN, Graph
from rllib_compat.networks.modules.configured import begin, new_network, original
from rllib_compat.networks.modules.distributions import Deterministic
from rllib_compat.networks.modules.exploration import Noise, Perturbed, root_mean_square
from rllib_compat.networks.modules.graph_module import GraphNet, ModuleWithTarget
from rllib_compat.networks.network import TARGET_PREFIX
from rllib_compat.networks.settings import ModelSettings
from rllib_compat.neutral.public import public
from rllib_compat.ray_versions import modules

#: What critics say of actions: also what `_forward_train` calls it.
Q_VALUES, TWIN_Q_VALUES = "q_values", "twin_q_values"
#: What `_forward_train` calls the first critic's opinion of the policy's own actions.
Q_OF_POLICY = "q_of_policy"


class CriticsModule(ModuleWithTarget):
    """A policy, critics, and targets of all of them, in one graph.

    The `model_config` holds the graph (`graph`, as `Graph.to_plain` makes it) and the shapes of its
    arrays (`shapes`, by name), or the keys that its algorithm's config has for it.
    """

    #: The algorithm whose config describes a new one.
    algorithm: ClassVar[str]
    #: Whether there may be layers for each part of an observation that was flattened.
    sees_parts: ClassVar[bool] = False
    #: Optimizer → what it trains. What comes before both (`state`), neither does: so it was in
    #: every Ray that had it.
    trained: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "actor": (POLICY, f"{POLICY}_{STATE}"),
        "critic": (CRITIC, TWIN, f"{CRITIC}_{STATE}"),
    }

    def setup(self) -> None:
        wanted = [Columns.ACTION_DIST_INPUTS] if self.inference_only else None
        if "graph" in self.model_config:
            self.graph = Graph.from_plain(self.model_config["graph"])
            self.net = GraphNet(self.graph, self.model_config["shapes"], wanted)
        else:
            settings = ModelSettings.of_module(self.model_config, self.algorithm)
            seen = original(self.observation_space) if self.sees_parts else self.observation_space
            new = new_network(settings, seen, self.action_space)
            arrays = new.arrays.items()
            shapes = {k: v.shape for k, v in arrays if not k.startswith(TARGET_PREFIX)}
            self.graph = new.graph
            self.net = GraphNet(self.graph, shapes, wanted, new.target.table or ())
            begin(self, new)
        self.net.requires_grad_(False)
        for part in self.trained:
            for parameter in self.parameters_of(part):
                parameter.requires_grad_(True)

    def get_non_inference_attributes(self) -> list[str]:
        """The layers that only the critics have, and the targets: env runners do without them."""
        critics = self.net.only_for((Q_VALUES, TWIN_Q_VALUES))
        return [*(f"net.{layer}" for layer in critics), "target_net"]

    def parameters_of(self, part: str) -> list[nn.Parameter]:
        """The parameters that one of the optimizers trains: `actor` or `critic`."""
        return list(self.net.parameters_of(*self.trained[part]).values())

    def forward_target(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """What the targets say: `q_values` of the actions in a batch; else what the policy does."""
        of_actions = Columns.ACTIONS in batch
        return (self._values if of_actions else self._policy)(self.target_net, batch)

    def critics(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """What the critics say of observations and actions: `q_values` `[B]`, `twin_q_values`."""
        return self._values(self.net, batch)

    def _values(self, net: GraphNet, batch: Mapping[str, Any]) -> dict[str, Any]:
        return self._computed(net, batch, Q_VALUES, TWIN_Q_VALUES)

    def _policy(self, net: GraphNet, batch: Mapping[str, Any]) -> dict[str, Any]:
        seen = {Columns.OBS: batch[Columns.OBS]}
        return self._computed(net, seen, Columns.ACTION_DIST_INPUTS, Columns.ACTIONS)

    def _computed(self, net: GraphNet, batch: Mapping[str, Any], *outputs: str) -> dict[str, Any]:
        wanted = [name for name in outputs if name in self.graph.outputs]
        return dict(net(self._inputs(batch), wanted))

    def _inputs(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """What the graph takes of a batch; observations as vectors where it takes vectors."""
        inputs = {name: batch[name] for name in self.graph.inputs if name in batch}
        if Columns.OBS in inputs and len(self.graph.inputs[Columns.OBS]) == 1:
            inputs[Columns.OBS] = inputs[Columns.OBS].flatten(1)
        return inputs

    def _forward(self, batch: dict[str, Any], **_: object) -> dict[str, Any]:
        return self._policy(self.net, batch)

    def _through_critic(self, batch: Mapping[str, Any]) -> Tensor:
        """What the first critic says of actions: gradients go through it, and not into it."""
        value: Tensor = self.net(batch, [Q_VALUES], fixed=True)[Q_VALUES]
        return value


@public("rllib_compat.modules")
class DeterministicModule(Perturbed, CriticsModule):
    """A deterministic policy with one critic or two, and targets of all of them.

    Where there is an `exploration_noise`, it explores with that; where there is `parameter_noise`,
    with noise on its weights, too.

    Actions are in the range that the policy was made for: that of the action space. Where the
    config said `normalize_actions`, the old Ray stretched them once more, as if they were within
    -1 … 1.
    """

    algorithm = "DDPG"
    sees_parts = True
    #: Whether a training pass computes what the actor's loss is made of.
    trains_actor = True

    def setup(self) -> None:
        super().setup()
        noise = self.model_config.get("exploration_noise")
        self.action_noise = Noise(noise, self.action_space) if noise else None
        self.action_dist_cls = Deterministic

    def regularized(self, part: str) -> list[nn.Parameter]:
        """The parameters of an optimizer that `l2_reg` makes smaller: all but biases."""
        named = self.net.parameters_of(*self.trained[part]).items()
        return [parameter for name, parameter in named if not _is_bias(name)]

    def scale_noise(self, scale: float) -> None:
        """Lets it explore with noise of one scale, whatever was sampled."""
        if self.action_noise is not None:
            self.action_noise.fixed_scale = scale

    def perturbed(self) -> list[nn.Parameter]:
        """The weights that actions are computed with."""
        return self.net.without_norms([Columns.ACTIONS])

    def actions_of(self, batch: Mapping[str, Any]) -> Tensor:
        """The policy's own actions."""
        actions: Tensor = self._policy(self.net, batch)[Columns.ACTIONS]
        return actions

    def moved_and_wanted(self, clean: Tensor, noisy: Tensor) -> tuple[float, float]:
        """What noise on weights did to actions, and what that on actions does."""
        wanted = self.action_noise.deviation if self.action_noise else 0.0
        return root_mean_square(clean, noisy), wanted

    def _forward_exploration(
        self, batch: dict[str, Any], t: int = 0, **_: object
    ) -> dict[str, Any]:
        with self.with_weight_noise():
            out = self._forward(batch)
        if self.action_noise is None:
            return out
        actions = self.action_noise(out[Columns.ACTIONS], t)
        return {Columns.ACTIONS: actions, Columns.ACTION_DIST_INPUTS: actions}

    def _forward_train(self, batch: dict[str, Any], **_: object) -> dict[str, Any]:
        out = self.critics(batch)
        if self.trains_actor:
            own = {**batch, Columns.ACTIONS: self.actions_of(batch)}
            out[Q_OF_POLICY] = self._through_critic(self._inputs(own))
        return out


def _is_bias(name: str) -> bool:
    stack, _, part = name.rpartition(".")
    return part == "bias" or (part == "beta" and ".norm." in stack)


@public("rllib_compat.modules")
class CriticRegularizedModule(CriticsModule):
    """A policy over Discrete or Box actions, and one critic or two: that of CRR.

    Of Discrete actions critics give a value each; Box actions are one of their inputs. The
    `model_config` has the keys of `CRRConfig` that say how large the networks are, and the
    `categorical_distribution_temperature`, by which logits are divided.
    """

    algorithm = "CRR"

    def setup(self) -> None:
        super().setup()
        self.discrete = isinstance(self.action_space, gymnasium.spaces.Discrete)
        kind = "TorchCategorical" if self.discrete else "TorchDiagGaussian"
        self.action_dist_cls = getattr(modules.torch_distributions(), kind)

    def policy_of(self, batch: Mapping[str, Any], *, target: bool = False) -> Any:
        """The distribution of actions, `torch.distributions`; of a Box, a normal for each part."""
        out = self._policy(self.target_net if target else self.net, batch)
        logits = out[Columns.ACTION_DIST_INPUTS]
        if self.discrete:
            return torch.distributions.Categorical(logits=logits, validate_args=False)
        mean, log_std = logits.chunk(2, dim=-1)
        return torch.distributions.Normal(mean, log_std.exp(), validate_args=False)

    def values_of(
        self, observations: Tensor, actions: Tensor | None = None, *, target: bool = False
    ) -> list[Tensor]:
        """What each critic says of actions, `[B]`; without actions, of all of them, `[B, n]`."""
        batch = {Columns.OBS: observations}
        if actions is not None:
            batch[Columns.ACTIONS] = actions if self.discrete else actions.flatten(1)
        net = self.target_net if target else self.net
        values = list(self._values(net, batch).values())
        if not self.discrete or actions is None:
            return values
        return [value.gather(-1, actions.long().unsqueeze(-1)).squeeze(-1) for value in values]


@public("rllib_compat.modules")
class MADDPGModule(CriticsModule):
    """A stochastic actor of one agent, and a critic that sees all of them.

    Lowe et al., "Multi-agent actor-critic for mixed cooperative-competitive environments" (2017).

    Actions are points of a simplex, one number for each Discrete action or each part of a Box:
    relaxed one-hot samples (Gumbel-softmax) of temperature 1. The `model_config` has the keys of
    `MADDPGConfig` that say how large the networks are, and what only all agents together determine:
    `agent` (this module's id), `critic_sees` (the modules whose observations and actions the critic
    sees, in order) and `critic_inputs` (how many numbers these are).
    """

    algorithm = "MADDPG"

    def setup(self) -> None:
        super().setup()
        self.agent = self.model_config.get("agent", DEFAULT_MODULE_ID)
        self.critic_sees = self.model_config.get("critic_sees", [self.agent])
        self.action_dist_cls = Deterministic

    def forward_target(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """What the target of the actor does: `actions`, sampled."""
        return self._acting(self.target_net, batch)

    def target_value(self, observations: Iterable[Tensor], actions: Iterable[Tensor]) -> Tensor:
        """What the target of the critic says, `[B]`, of what it sees of all agents."""
        everyone = {EVERYONE: _together(observations, actions)}
        value: Tensor = self.target_net(everyone, [Q_VALUES])[Q_VALUES]
        return value

    def _forward(self, batch: dict[str, Any], **_: object) -> dict[str, Any]:
        return self._acting(self.net, batch)

    def _forward_train(self, batch: dict[str, Any], **_: object) -> dict[str, Any]:
        out = self._acting(self.net, batch)
        everyone = batch[EVERYONE]
        seen = [everyone[agent][Columns.OBS] for agent in self.critic_sees]
        acted = {agent: everyone[agent][Columns.ACTIONS] for agent in self.critic_sees}
        now = {**acted, self.agent: out[Columns.ACTIONS]}
        return {
            **out,
            **self.critics({EVERYONE: _together(seen, acted.values())}),
            Q_OF_POLICY: self._through_critic({EVERYONE: _together(seen, now.values())}),
        }

    def _acting(self, net: GraphNet, batch: Mapping[str, Any]) -> dict[str, Any]:
        """Actions, and the logits that they are sampled from; also where nothing explores."""
        out = self._policy(net, batch)
        logits = out[Columns.ACTION_DIST_INPUTS]
        return {**out, Columns.ACTIONS: torch.softmax(logits + _gumbel(logits), -1)}


def _together(observations: Iterable[Tensor], actions: Iterable[Tensor]) -> Tensor:
    return torch.cat([*observations, *actions], -1).float()


def _gumbel(logits: Tensor) -> Tensor:
    """Standard Gumbel noise in the shape of some logits."""
    smallest = torch.finfo(logits.dtype).tiny
    uniform = torch.rand_like(logits).clamp(min=smallest)
    return -torch.log(-torch.log(uniform))
