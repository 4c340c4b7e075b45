"""New networks that see the step before where those of the old Rays saw it (`LSTMWrapper`).

The connector `runtime.previous_steps` puts previous action and reward behind the observation. Here
they go past the dense layers, into the LSTM. An observation is often small beside a one-hot action
and the reward: in one layer with them it is hardly seen at first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import gymnasium
import torch
from ray.rllib.core.columns import Columns
from ray.rllib.core.models.base import ENCODER_OUT
from ray.rllib.core.models.configs import MLPEncoderConfig
from ray.rllib.core.models.torch.encoder import TorchMLPEncoder

from rllib_compat.networks.ops.in_torch import one_hot
from rllib_compat.networks.wrappers.previous_steps import (
    LOOKING_BACK,
    PREVIOUS_ACTIONS,
    PREVIOUS_REWARDS,
    Previous,
    choices_in,
)
from rllib_compat.ray_versions import modules


@dataclass
class BesideLayersConfig(MLPEncoderConfig):  # type: ignore[misc]  # Ray has no types
    """Dense layers for the first numbers of an observation; the last go past them.

    Attributes:
        beside: How many go past.
    """

    beside: int = 0

    @property
    def output_dims(self) -> tuple[int]:
        """How many numbers come out."""
        return (super().output_dims[0] + self.beside,)

    def build(self, framework: str = "torch") -> Any:
        """The layers; Ray calls it."""
        del framework
        return BesideLayers(self)


class BesideLayers(TorchMLPEncoder):  # type: ignore[misc]  # Ray has no types
    """What `BesideLayersConfig` describes; the weights are named as Ray's."""

    def _forward(self, inputs: Any, **_: Any) -> dict[str, Any]:
        whole, count = inputs[Columns.OBS], self.config.input_dims[0]
        return {ENCODER_OUT: torch.cat([self.net(whole[..., :count]), whole[..., count:]], dim=-1)}


class SeesPreviousSteps(modules.ChangesEncoders):
    """A base of a catalog: the step before goes into the LSTM of its networks."""

    @classmethod
    def encoder_instead(cls, made: Any, space: Any, told: Mapping[str, Any], actions: Any) -> Any:
        """The same encoder; where it is to see the step before, its dense layers do not."""
        made = super().encoder_instead(made, space, told, actions)
        beside = numbers_of(told, actions) if told["use_lstm"] else 0
        if not beside:
            return made
        own = gymnasium.spaces.Box(-float("inf"), float("inf"), (space.shape[0] - beside,))
        layers = cls.get_tokenizer_config(own, told)  # type: ignore[attr-defined]  # of the catalog
        values = {field.name: getattr(layers, field.name) for field in fields(layers)}
        return replace(made, tokenizer_config=BesideLayersConfig(**values, beside=beside))


def beside_observation(batch: Mapping[str, Any], actions: Any) -> Any:
    """Observations `[…, n]`, with the step before behind them.

    Args:
        batch: `obs`, which has it already, or `prev_actions` `[…, k]` (flattened, as they were
            taken) and `prev_rewards` `[…, 1]` stand beside it.
        actions: The action space.
    """
    parts = [batch[Columns.OBS]]
    if PREVIOUS_ACTIONS in batch:
        parts.append(one_hot({}, {"parts": choices_in(actions)}, batch[PREVIOUS_ACTIONS]))
    if PREVIOUS_REWARDS in batch:
        parts.append(batch[PREVIOUS_REWARDS])
    return torch.cat(parts, dim=-1) if parts[1:] else parts[0]


def numbers_of(told: Mapping[str, Any], actions: Any) -> int:
    """How many numbers of an observation are of the step before.

    Args:
        told: The model config.
        actions: The action space.
    """
    action, reward = (int(bool(told.get(key))) for key in LOOKING_BACK)
    return Previous(action, reward, choices_in(actions)).size
