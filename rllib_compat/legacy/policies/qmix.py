"""`mixers` and `model` of QMIX: torch modules whose layers have the names of old Rays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from ray.rllib.models.preprocessors import get_preprocessor
from ray.rllib.models.torch.torch_modelv2 import TorchModelV2
from torch import nn
from torch.nn import functional

__all__ = ["QMixer", "RNNModel", "VDNMixer"]


class VDNMixer(nn.Module):
    """The group's value is the sum of the agents'."""

    def forward(self, agent_qs: torch.Tensor, batch: object) -> torch.Tensor:
        """Mixes `[B, T, agents]` to `[B, T, 1]`."""
        del batch
        return agent_qs.sum(2, keepdim=True)


class QMixer(nn.Module):
    """Two layers whose weights, none below zero, another network makes of the state.

    Args:
        n_agents: How many agents a group has.
        state_shape: The shape of the state of all.
        mixing_embed_dim: The units of the first layer.
    """

    def __init__(self, n_agents: int, state_shape: Sequence[int], mixing_embed_dim: int) -> None:
        super().__init__()
        self.n_agents, self.embed_dim = n_agents, mixing_embed_dim
        self.state_dim = int(np.prod(state_shape))
        self.hyper_w_1 = nn.Linear(self.state_dim, mixing_embed_dim * n_agents)
        self.hyper_w_final = nn.Linear(self.state_dim, mixing_embed_dim)
        self.hyper_b_1 = nn.Linear(self.state_dim, mixing_embed_dim)
        first = nn.Linear(self.state_dim, mixing_embed_dim)
        self.V = nn.Sequential(first, nn.ReLU(), nn.Linear(mixing_embed_dim, 1))

    def forward(self, agent_qs: torch.Tensor, states: torch.Tensor) -> torch.Tensor:
        """Mixes `[B, T, agents]` to `[B, T, 1]`; the states have as many rows, of any shape."""
        states = states.reshape(*agent_qs.shape[:2], self.state_dim)
        weights = self.hyper_w_1(states).abs().unflatten(-1, (self.n_agents, self.embed_dim))
        mixed = (agent_qs.unsqueeze(-1) * weights).sum(2)
        hidden = functional.elu(mixed + self.hyper_b_1(states))
        out = (hidden * self.hyper_w_final(states).abs()).sum(-1, keepdim=True)
        return torch.add(out, self.V(states))


class RNNModel(TorchModelV2, nn.Module):  # type: ignore[misc]  # Ray has no types
    """The Q-network of one agent: a dense layer, a GRU cell, a dense layer.

    Args:
        obs_space: The observation space of an agent.
        action_space: Its action space.
        num_outputs: How many actions there are.
        model_config: The config's `model`, with `lstm_cell_size` and `n_agents`.
        name: The model's name.
    """

    def __init__(
        self, obs_space: Any, action_space: Any, num_outputs: int, model_config: Any, name: str
    ) -> None:
        TorchModelV2.__init__(self, obs_space, action_space, num_outputs, model_config, name)
        nn.Module.__init__(self)
        self.obs_size = get_preprocessor(obs_space)(obs_space).size
        self.rnn_hidden_dim = model_config["lstm_cell_size"]
        self.n_agents = model_config["n_agents"]
        self.fc1 = nn.Linear(self.obs_size, self.rnn_hidden_dim)
        self.rnn = nn.GRUCell(self.rnn_hidden_dim, self.rnn_hidden_dim)
        self.fc2 = nn.Linear(self.rnn_hidden_dim, num_outputs)

    def get_initial_state(self) -> list[torch.Tensor]:
        """Zeros: a row an agent, or one row alone."""
        return [torch.zeros(self.n_agents, self.rnn_hidden_dim).squeeze(0)]

    def forward(self, input_dict: Any, hidden_state: Any, seq_lens: object) -> Any:
        """The values of all actions, and the state after them."""
        del seq_lens
        features = functional.relu(self.fc1(input_dict["obs_flat"].float()))
        state = self.rnn(features, hidden_state[0].reshape(-1, self.rnn_hidden_dim))
        return self.fc2(state), [state]
