"""The module of QMIX: a recurrent Q-network that all agents of a group share, and a mixer.

Rashid et al., "QMIX: Monotonic value function factorisation" (2018); Sunehag et al.,
"Value-decomposition networks" (2017).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import torch
from ray.rllib.core.columns import Columns
from ray.rllib.utils.schedules.scheduler import Scheduler
from torch import Tensor, nn
from torch.nn import functional

from rllib_compat.networks.modules.graph_module import ModuleWithTarget
from rllib_compat.networks.modules.grouped import MASK, OBS, STATE, grouped_space
from rllib_compat.neutral.errors import ConfigError
from rllib_compat.neutral.public import public

#: What `_forward_train` gives: the mixed values of the actions that were taken, the values of all
#: actions after each step, and what the targets say of those.
TAKEN, FOLLOWING, TARGETS = "q_taken", "q_following", "q_targets"
#: The state of each agent's GRU.
HIDDEN = "h"


@public("rllib_compat.modules")
class QMIXModule(ModuleWithTarget):
    """Acts for a group of agents by one network, and adds their values up with a mixer.

    It observes what `grouped_space` describes. The `model_config` has the `mixer` (`qmix`, `vdn` or
    None), its `mixing_embed_dim`, the GRU's `lstm_cell_size`, and `epsilon`, a number or a schedule
    `[[step, epsilon], …]`. Sequences are `[B, T, …]`, with `state_in` `[B, agents, units]`.
    """

    def setup(self) -> None:
        options, space = self.model_config, grouped_space(self.observation_space)
        sizes = {name: tuple(part.shape or ()) for name, part in space.spaces.items()}
        self.actions = _actions_of(self.action_space)
        self.agents, size = sizes[OBS]
        if len(self.action_space.spaces) != self.agents:
            raise ConfigError(
                f"The group's observation space has {self.agents} agents, and its action space "
                f"{len(self.action_space.spaces)}.",
                where="action_space",
                fix="Pass group spaces with a part for each agent.",
            )
        if MASK in sizes and sizes[MASK][1] != self.actions:
            raise ConfigError(
                f"An action mask has {self.actions} numbers, one for each action, not "
                f"{sizes[MASK][1]}.",
                where="observation_space",
                fix=f"{MASK}: Box(0, 1, ({self.actions},))",
            )
        self.units = options["lstm_cell_size"]
        networks: dict[str, nn.Module] = {"agent": _AgentNetwork(size, self.units, self.actions)}
        if not self.inference_only and options["mixer"] is not None:
            inputs = sizes[STATE][0] if STATE in sizes else self.agents * size
            kinds = {"qmix": _MonotonicMixer, "vdn": _Sum}
            networks["mixer"] = kinds[options["mixer"]](
                inputs, self.agents, options["mixing_embed_dim"]
            )
        self.net = nn.ModuleDict(networks)
        self.epsilon_schedule = Scheduler(
            fixed_value_or_schedule=options["epsilon"], framework="torch"
        )

    def get_initial_state(self) -> dict[str, Any]:
        return {HIDDEN: torch.zeros(self.agents, self.units)}

    def get_non_inference_attributes(self) -> list[str]:
        return ["net.mixer", "target_net"]

    def forward_target(self, batch: dict[str, Any]) -> dict[str, Any]:
        """What the targets say of all actions, `[B, T, agents, actions]`."""
        return {TARGETS: self._values(self.target_net, batch[Columns.OBS])[0]}

    def mixed(self, values: Tensor, observations: Mapping[str, Any], *, target: bool) -> Tensor:
        """Values of the whole group, from those of its agents, `[B, T, agents]`, and observations.

        Returns:
            `[B, T, 1]`; without a mixer the agents' own, `[B, T, agents]`.
        """
        net = self.target_net if target else self.net
        if "mixer" not in net:
            return values
        state = observations[STATE] if STATE in observations else observations[OBS].flatten(2)
        mixed: Tensor = net["mixer"](values, state.float())
        return mixed

    def _forward(self, batch: dict[str, Any], **_: object) -> dict[str, Any]:
        values, state = self._acting(batch)
        return self._answer(values.argmax(-1), state)

    # Ray's own forward passes have it, and this one replaces them.
    @torch.no_grad()  # type: ignore[untyped-decorator,unused-ignore]
    def _forward_exploration(
        self, batch: dict[str, Any], t: int = 0, **_: object
    ) -> dict[str, Any]:
        """Each agent takes one of its valid actions at random, with probability epsilon."""
        values, state = self._acting(batch)
        best = values.argmax(-1)
        # The greatest of numbers of which each is as likely to be: faster than `multinomial`.
        drawn = torch.rand_like(values).masked_fill_(values == -torch.inf, -1.0).argmax(-1)
        epsilon = float(self.epsilon_schedule.update(int(t)))
        explores = torch.rand(best.shape, device=best.device) < epsilon
        return self._answer(torch.where(explores, drawn, best), state)

    def _forward_train(self, batch: dict[str, Any], **_: object) -> dict[str, Any]:
        values = self._values(self.net, batch[Columns.OBS])[0]
        taken = values.gather(-1, batch[Columns.ACTIONS].long().unsqueeze(-1)).squeeze(-1)
        with torch.no_grad():
            following = self._values(self.net, batch[Columns.NEXT_OBS])[0]
        mixed = self.mixed(taken, batch[Columns.OBS], target=False)
        targets = self.forward_target({Columns.OBS: batch[Columns.NEXT_OBS]})
        return {TAKEN: mixed, FOLLOWING: following, **targets}

    def _acting(self, batch: dict[str, Any]) -> tuple[Tensor, Tensor]:
        """Values, those of invalid actions minus infinity, and the next state."""
        seen = batch[Columns.OBS]
        values, state = self._values(self.net, seen, batch[Columns.STATE_IN][HIDDEN])
        if MASK in seen:
            values = values.masked_fill(seen[MASK] == 0, -torch.inf)
        return values, state

    def _answer(self, actions: Tensor, state: Tensor) -> dict[str, Any]:
        return {Columns.ACTIONS: tuple(actions.unbind(-1)), Columns.STATE_OUT: {HIDDEN: state}}

    def _values(
        self, net: nn.ModuleDict, seen: Mapping[str, Any], state: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Values `[B, T, agents, actions]`, and the state after them `[B, agents, units]`."""
        return net["agent"](seen[OBS].float(), state)  # type: ignore[no-any-return]


class _AgentNetwork(nn.Module):
    """The Q-network of one agent: a dense layer, a GRU, a dense layer."""

    def __init__(self, inputs: int, units: int, actions: int) -> None:
        super().__init__()
        self.encoder = nn.Linear(inputs, units)
        self.gru = nn.GRU(units, units, batch_first=True)
        self.q = nn.Linear(units, actions)

    def forward(self, seen: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
        batch, steps, agents, _ = seen.shape
        if steps == 1 and state is not None:
            return self._step(seen, state)
        features = functional.relu(self.encoder(seen)).transpose(1, 2).flatten(0, 1)
        begin = None if state is None else state.reshape(1, batch * agents, -1).float()
        out, last = self.gru(features, begin)
        values = self.q(out).reshape(batch, agents, steps, -1).transpose(1, 2)
        return values, last.reshape(batch, agents, -1)

    def _step(self, seen: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """The same for one step, as agents act: a cell takes half of the time of a GRU."""
        rows, gru = seen.shape[0] * seen.shape[2], self.gru
        features = functional.relu(self.encoder(seen)).reshape(rows, -1)
        weights: Any = gru.weight_ih_l0, gru.weight_hh_l0, gru.bias_ih_l0, gru.bias_hh_l0
        after = torch.gru_cell(features, state.reshape(rows, -1).float(), *weights)
        return self.q(after).reshape(*seen.shape[:3], -1), after.reshape(state.shape)


class _Sum(nn.Module):
    """VDN: the group's value is the sum of the agents'."""

    def __init__(self, *_: int) -> None:
        super().__init__()

    def forward(self, values: Tensor, _: Tensor) -> Tensor:
        return values.sum(-1, keepdim=True)


class _MonotonicMixer(nn.Module):
    """QMIX: two layers whose weights, none below zero, another network makes of the state."""

    def __init__(self, inputs: int, agents: int, units: int) -> None:
        super().__init__()
        self.first_weight = nn.Linear(inputs, agents * units)
        self.first_bias = nn.Linear(inputs, units)
        self.last_weight = nn.Linear(inputs, units)
        self.last_bias = nn.Sequential(nn.Linear(inputs, units), nn.ReLU(), nn.Linear(units, 1))

    def forward(self, values: Tensor, state: Tensor) -> Tensor:
        layers = self.first_weight, self.first_bias, self.last_weight, self.last_bias
        return mix(values, *(layer(state) for layer in layers))


def mix(
    values: Tensor, first_weight: Tensor, first_bias: Tensor, last_weight: Tensor, last_bias: Tensor
) -> Tensor:
    """QMIX's value of a group, `[B, T, 1]`, that grows with those of its agents, `[B, T, agents]`.

    Weights are `[B, T, agents * units]` and `[B, T, units]`, and their signs mean nothing; biases
    are `[B, T, units]` and `[B, T, 1]`.
    """
    weight = first_weight.abs().unflatten(-1, (values.shape[-1], first_bias.shape[-1]))
    hidden = functional.elu(torch.einsum("bta,btau->btu", values, weight) + first_bias)
    return (hidden * last_weight.abs()).sum(-1, keepdim=True) + last_bias


def _actions_of(space: gymnasium.Space[Any]) -> int:
    """How many actions each agent has."""
    parts = space.spaces if isinstance(space, gymnasium.spaces.Tuple) else ()
    sizes = {int(part.n) if isinstance(part, gymnasium.spaces.Discrete) else -1 for part in parts}
    if len(sizes) != 1 or -1 in sizes:
        raise ConfigError(
            f"The agents of a group have the same Discrete actions, not {space}.",
            where="action_space",
            fix="Group the agents: env.with_agent_groups(groups, obs_space=…, act_space=…).",
        )
    return sizes.pop()
