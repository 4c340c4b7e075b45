"""`mixers` and `model` of QMIX: torch modules whose layers have the names of old Rays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from ray.rllib.models.preprocessors import get_preprocessor
from ray.rllib.models.torch.torch_modelv2 import TorchModelV2
from torch import nn

from rllib_compat.algorithms.objectives import td_targets
from rllib_compat.algorithms.qmix import next_values
from rllib_compat.networks.modules.qmix import mix

__all__ = ["QMixLoss", "QMixer", "RNNModel", "VDNMixer"]


class VDNMixer(nn.Module):
    """The group's value is the sum of the agents'."""

    def forward(self, agent_qs: torch.Tensor, batch: object) -> torch.Tensor:
        """Mixes `[B, T, agents]` to `[B, T, 1]`."""
        return agent_qs.sum(2, keepdim=True)


class QMixer(nn.Module):
    """Two layers; another network computes their weights, none below zero, from the state."""

    hyper_w_1: nn.Module
    hyper_w_final: nn.Module
    hyper_b_1: nn.Module
    V: nn.Module

    def __init__(self, n_agents: int, state_shape: Sequence[int], mixing_embed_dim: int) -> None:
        super().__init__()
        self.n_agents, self.embed_dim = n_agents, mixing_embed_dim
        self.state_dim = size = int(np.prod(state_shape))
        hidden, last = nn.Linear(size, mixing_embed_dim), nn.Linear(mixing_embed_dim, 1)
        layers = {
            "hyper_w_1": nn.Linear(size, n_agents * mixing_embed_dim),
            "hyper_w_final": nn.Linear(size, mixing_embed_dim),
            "hyper_b_1": nn.Linear(size, mixing_embed_dim),
            "V": nn.Sequential(hidden, nn.ReLU(), last),
        }
        for name, layer in layers.items():
            self.add_module(name, layer)

    def forward(self, agent_qs: torch.Tensor, states: torch.Tensor) -> torch.Tensor:
        """Mixes `[B, T, agents]` to `[B, T, 1]`; the states have as many rows, of any shape."""
        states = states.reshape(*agent_qs.shape[:2], self.state_dim)
        layers = self.hyper_w_1, self.hyper_b_1, self.hyper_w_final, self.V
        return mix(agent_qs, *(layer(states) for layer in layers))


class RNNModel(TorchModelV2, nn.Module):  # type: ignore[misc]  # Ray has no types
    """The Q-network of one agent: a dense layer, a GRU cell, a dense layer.

    Args:
        obs_space: The observation space of an agent.
        action_space: Its action space.
        num_outputs: How many actions there are.
        model_config: The config's `model`, with `lstm_cell_size` and `n_agents`.
        name: The model's name.
    """

    fc1: nn.Module
    rnn: nn.Module
    fc2: nn.Module

    def __init__(
        self, obs_space: Any, action_space: Any, num_outputs: int, model_config: Any, *name: str
    ) -> None:
        nn.Module.__init__(self)
        TorchModelV2.__init__(self, obs_space, action_space, num_outputs, model_config, *name)
        units = model_config["lstm_cell_size"]
        size = get_preprocessor(obs_space)(obs_space).size
        self.n_agents, self.rnn_hidden_dim, self.obs_size = model_config["n_agents"], units, size
        layers = {
            "fc1": nn.Linear(size, units),
            "rnn": nn.GRUCell(units, units),
            "fc2": nn.Linear(units, num_outputs),
        }
        for place, layer in layers.items():
            self.add_module(place, layer)

    def get_initial_state(self) -> list[torch.Tensor]:
        """Zeros: a row an agent, or one row alone."""
        return [torch.zeros(self.n_agents, self.rnn_hidden_dim).squeeze(0)]

    def forward(self, input_dict: Any, hidden_state: Any, *_: object) -> Any:
        """The values of all actions, and the state after them."""
        flat = input_dict["obs_flat"].to(torch.float32)
        seen = self.fc1(flat).relu()
        state = self.rnn(seen, hidden_state[0].reshape(len(seen), -1))
        return self.fc2(state), [state]


class QMixLoss(nn.Module):
    """QMIX's loss of sequences."""

    def __init__(
        self,
        model: Any,
        target_model: Any,
        mixer: Any,
        target_mixer: Any,
        n_agents: int,
        n_actions: int,
        double_q: bool = True,
        gamma: float = 0.99,
    ) -> None:
        super().__init__()
        self.model, self.target_model = model, target_model
        self.mixer, self.target_mixer = mixer, target_mixer
        self.n_agents, self.n_actions = n_agents, n_actions
        self.double_q, self.gamma = double_q, gamma

    def forward(
        self,
        rewards: torch.Tensor,
        actions: torch.Tensor,
        terminated: torch.Tensor,
        mask: torch.Tensor,
        obs: torch.Tensor,
        next_obs: torch.Tensor,
        action_mask: object,
        next_action_mask: torch.Tensor,
        state: torch.Tensor | None = None,
        next_state: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, ...]:
        """The loss, the mask of what counts, errors, values and targets.

        Args:
            rewards: `[B, T, agents]`.
            actions: The same, as `terminated` and `mask` (1: a step; 0: padding).
            terminated: Whether the episode has ended by then.
            mask: What counts.
            obs: `[B, T, agents, n]`.
            next_obs: What was observed next.
            action_mask: Ignored, as in old Rays.
            next_action_mask: Which actions there are then, `[B, T, agents, actions]`.
            state: The state of all; by default what they observe.
            next_state: The state after it.

        Raises:
            ValueError: Only one of the two states is given.
        """
        if [state, next_state].count(None) == 1:
            raise ValueError("Give both of state and next_state, or none.")
        seen, then = (obs, next_obs) if state is None else (state, next_state)
        values = self._unrolled(self.model, obs).gather(3, actions.unsqueeze(3)).squeeze(3)
        with torch.no_grad():
            targets = self._unrolled(self.target_model, next_obs)
            valid = (next_action_mask != 0) | (mask != 1).unsqueeze(-1)
            own = self._unrolled(self.model, next_obs) if self.double_q else targets
            best = next_values(targets, own, valid, self.double_q)
            mixed = best if self.mixer is None else self.target_mixer(best, then)
            goals = td_targets(rewards, terminated, mixed, self.gamma)
        if self.mixer is not None:
            values = self.mixer(values, seen)
        errors = values - goals
        counted = mask.expand_as(errors)
        masked = errors * counted
        return masked.pow(2.0).sum() / counted.sum(), counted, masked, values, goals

    def _unrolled(self, model: Any, obs: torch.Tensor) -> torch.Tensor:
        """A network's values of all actions, step by step, `[B, T, agents, actions]`."""
        rows = obs.shape[0] * obs.shape[2]
        state = [
            part.expand(obs.shape[0], obs.shape[2], -1).reshape(rows, -1)
            for part in model.get_initial_state()
        ]
        found = []
        for step in obs.unbind(1):
            values, state = model({"obs": step.flatten(0, 1)}, state, None)
            found.append(values.unflatten(0, step.shape[:2]))
        return torch.stack(found, 1)
