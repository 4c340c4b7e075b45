"""Models and policies of `ray.rllib.examples` that the installed Ray lacks, for the old API stack.

Layers have the names and the sizes of Ray 1.13.0, and are made in its order, so that a checkpoint's
weights fit, and a seed gives the same ones.
"""

from __future__ import annotations

import random
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from gymnasium.spaces import Box, Discrete
from ray.rllib.models.preprocessors import get_preprocessor
from ray.rllib.models.torch.misc import SlimFC, normc_initializer
from ray.rllib.models.torch.recurrent_net import RecurrentNetwork
from ray.rllib.models.torch.torch_modelv2 import TorchModelV2
from ray.rllib.policy.policy import Policy
from ray.rllib.policy.view_requirement import ViewRequirement
from ray.rllib.utils.torch_utils import one_hot
from torch import nn

if TYPE_CHECKING:
    from gymnasium import Space


__all__ = [
    "PAPER",
    "ROCK",
    "SCISSORS",
    "AlwaysSameHeuristic",
    "BeatLastHeuristic",
    "TorchBatchNormModel",
    "TorchFrameStackingCartPoleModel",
    "TorchRNNModel",
]

ROCK, PAPER, SCISSORS = _MOVES = range(3)


class TorchRNNModel(RecurrentNetwork, nn.Module):  # type: ignore[misc]  # Ray has no types
    """A dense layer, an LSTM, and a dense layer each for actions and value."""

    def __init__(
        self,
        obs_space: Any,
        action_space: Space[Any],
        num_outputs: int,
        model_config: object,
        name: str,
        fc_size: int = 64,
        lstm_state_size: int = 256,
    ) -> None:
        nn.Module.__init__(self)
        RecurrentNetwork.__init__(self, obs_space, action_space, num_outputs, model_config, name)
        preprocessor = get_preprocessor(obs_space)(obs_space)
        self.obs_size = preprocessor.size
        self.fc_size, self.lstm_state_size = fc_size, lstm_state_size
        self.fc1 = nn.Linear(self.obs_size, fc_size)
        self.lstm = nn.LSTM(fc_size, lstm_state_size, batch_first=True)
        self.action_branch = nn.Linear(lstm_state_size, num_outputs)
        self.value_branch = nn.Linear(lstm_state_size, 1)
        self._features: Any = None

    def get_initial_state(self) -> list[torch.Tensor]:
        """Zeros for h and c, where the model is."""
        return list(self.fc1.weight.new_zeros(2, self.lstm_state_size))

    def forward_rnn(self, inputs: object, state: Any, seq_lens: object) -> Any:
        """Logits and the next state of inputs (batch, time, observation)."""
        before = tuple(part.unsqueeze(0) for part in state)
        self._features, after = self.lstm(torch.relu(self.fc1(inputs)), before)
        return self.action_branch(self._features), [part.squeeze(0) for part in after]

    def value_function(self) -> Any:
        """The values of the last forward pass."""
        return self.value_branch(self._features).flatten()


class TorchBatchNormModel(TorchModelV2, nn.Module):  # type: ignore[misc]  # Ray has no types
    """Two layers of 256 units, each followed by a batch normalisation that learns in training."""

    def __init__(
        self,
        obs_space: Any,
        action_space: Space[Any],
        num_outputs: int,
        model_config: object,
        name: str,
        **_: object,
    ) -> None:
        TorchModelV2.__init__(self, obs_space, action_space, num_outputs, model_config, name)
        nn.Module.__init__(self)
        sizes = (int(np.prod(obs_space.shape)), 256, 256)
        hidden: list[nn.Module] = []
        for inputs, units in pairwise(sizes):
            hidden += [_dense(inputs, units, 1.0, nn.ReLU), nn.BatchNorm1d(units)]
        self._logits = _dense(256, num_outputs, 0.01)
        self._value_branch = _dense(256, 1, 1.0)
        self._hidden_layers = nn.Sequential(*hidden)
        self._features: Any = None

    def forward(self, input_dict: Any, state: object, seq_lens: object) -> Any:
        """Logits; statistics move only in batches that are learned from."""
        learning = getattr(input_dict, "is_training", None)
        if learning is None:  # a plain dict, as some Rays gave it
            learning = input_dict.get("is_training")
        features = self._hidden_layers.train(bool(learning))(input_dict["obs"])
        self._features = features
        return self._logits(features), []

    def value_function(self) -> Any:
        """The values of the last forward pass."""
        return self._value_branch(self._features).flatten()


def _dense(inputs: int, units: int, scale: float, activation: object = None) -> Any:
    return SlimFC(inputs, units, initializer=normc_initializer(scale), activation_fn=activation)


class TorchFrameStackingCartPoleModel(TorchModelV2, nn.Module):  # type: ignore[misc]
    """Dense layers over the last observations, with the actions and rewards that led to them."""

    def __init__(
        self,
        obs_space: Any,
        action_space: Any,
        num_outputs: int,
        model_config: object,
        name: str,
        num_frames: int = 3,
    ) -> None:
        nn.Module.__init__(self)
        TorchModelV2.__init__(self, obs_space, action_space, None, model_config, name)
        self.num_frames, self.num_outputs = num_frames, num_outputs
        (size,) = obs_space.shape
        self.layer1 = SlimFC(num_frames * (size + action_space.n + 1), 256, activation_fn="relu")
        self.layer2 = SlimFC(256, 256, activation_fn="relu")
        self.out = SlimFC(256, num_outputs, activation_fn="linear")
        self.values = SlimFC(256, 1, activation_fn="linear")
        self._last_value: Any = None
        before = f"-{num_frames}:-1"
        needs: Any = self.view_requirements
        needs |= {
            "prev_n_obs": ViewRequirement("obs", shift=f"-{num_frames - 1}:0", space=obs_space),
            "prev_n_rewards": ViewRequirement("rewards", shift=before),
            "prev_n_actions": ViewRequirement("actions", shift=before, space=action_space),
        }

    def forward(self, input_dict: Any, states: object, seq_lens: object) -> Any:
        """Logits of the last steps."""
        parts = (
            input_dict["prev_n_obs"],
            one_hot(input_dict["prev_n_actions"], self.action_space),
            input_dict["prev_n_rewards"],
        )
        rows = [part.reshape(len(parts[0]), -1) for part in parts]
        features = self.layer2(self.layer1(torch.cat(rows, dim=-1)))
        self._last_value = self.values(features)
        return self.out(features), []

    def value_function(self) -> Any:
        """The values of the last forward pass."""
        return self._last_value.squeeze(-1)


class _Player(Policy):  # type: ignore[misc]  # Ray has no types
    """A player of rock, paper, scissors, which learns nothing."""

    def __init__(self, *given: object, **named: object) -> None:
        super().__init__(*given, **named)
        self.exploration = self._create_exploration()

    def learn_on_batch(self, samples: object) -> None:
        """Learns nothing."""

    def get_weights(self) -> None:
        """Has none."""

    def set_weights(self, weights: object) -> None:
        """Has none."""


class AlwaysSameHeuristic(_Player):
    """Draws one move for each episode and always plays it."""

    def __init__(self, *given: object, **named: object) -> None:
        super().__init__(*given, **named)
        self.view_requirements["state_in_0"] = ViewRequirement(
            "state_out_0", shift=-1, space=Box(0, 100, (), np.int32)
        )

    def get_initial_state(self) -> list[int]:
        """The move."""
        return [random.choice(_MOVES)]  # noqa: S311 - a game

    def compute_actions(
        self,
        obs_batch: object,
        state_batches: Any = None,
        *_: object,
        **__: object,
    ) -> Any:
        """The moves, which are the states."""
        return state_batches[0], state_batches, {}


class BeatLastHeuristic(_Player):
    """Plays what beats the opponent's last move, which it observes as a number or one-hot."""

    def compute_actions(self, obs_batch: Any, *_: object, **__: object) -> Any:
        """The moves."""
        one_hot = not isinstance(self.observation_space, Discrete)
        seen = [int(np.argmax(o)) if one_hot else int(o) for o in obs_batch]
        return [self._answer(move) for move in seen], [], {}

    def _answer(self, move: int) -> int:
        return (move + 1) % 3 if move in _MOVES else random.choice(_MOVES)  # noqa: S311 - a game
