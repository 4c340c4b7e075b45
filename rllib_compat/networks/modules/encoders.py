"""Encoders of new networks, in the place of two of Ray's; weights have the same names.

Images come as environments give them: bytes, which layers have to make floats. Every old RLlib did
so (`VisionNetwork`); today's layers die of bytes. Environments, episodes and replay buffers go on
with these, which take a quarter of the memory. And an LSTM spends no time on maps over its two
states.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from ray.rllib.core.columns import Columns
from ray.rllib.core.models.base import ENCODER_OUT
from ray.rllib.core.models.configs import CNNEncoderConfig, RecurrentEncoderConfig
from ray.rllib.core.models.torch.encoder import TorchCNNEncoder, TorchLSTMEncoder

from rllib_compat.ray_versions import modules


@dataclass
class BytesEncoderConfig(CNNEncoderConfig):  # type: ignore[misc]  # Ray has no types
    """Convolutions for images of any numbers."""

    def build(self, framework: str = "torch") -> Any:
        """The layers; Ray calls it."""
        del framework
        return BytesEncoder(self)


class BytesEncoder(TorchCNNEncoder):  # type: ignore[misc]  # Ray has no types
    """What `BytesEncoderConfig` describes."""

    def _forward(self, inputs: Any, **kwargs: Any) -> dict[str, Any]:
        made: dict[str, Any] = super()._forward(
            {**inputs, Columns.OBS: inputs[Columns.OBS].float()}, **kwargs
        )
        return made


@dataclass
class LSTMEncoderConfig(RecurrentEncoderConfig):  # type: ignore[misc]  # Ray has no types
    """An LSTM behind other layers."""

    def build(self, framework: str = "torch") -> Any:
        """The layers; Ray calls it."""
        return (
            LSTMEncoder(self) if self.recurrent_layer_type == "lstm" else super().build(framework)
        )


class LSTMEncoder(TorchLSTMEncoder):  # type: ignore[misc]  # Ray has no types
    """What `LSTMEncoderConfig` describes: `obs` is one array, `state_in` has `h` and `c`."""

    def _forward(self, inputs: Any, **_: Any) -> dict[str, Any]:
        seen, state = inputs[Columns.OBS], inputs[Columns.STATE_IN]
        features = self.tokenizer({Columns.OBS: seen.flatten(0, 1)})[ENCODER_OUT]
        states = state["h"].transpose(0, 1), state["c"].transpose(0, 1)
        out, (h, c) = self.lstm(features.unflatten(0, seen.shape[:2]), states)
        after = {"h": h.transpose(0, 1), "c": c.transpose(0, 1)}
        return {ENCODER_OUT: out, Columns.STATE_OUT: after}


#: Ray's config of an encoder → the one of ours.
_INSTEAD = {CNNEncoderConfig: BytesEncoderConfig, RecurrentEncoderConfig: LSTMEncoderConfig}


class OwnEncoders(modules.ChangesEncoders):
    """A base of a catalog whose networks have these."""

    @classmethod
    def encoder_instead(cls, made: Any, space: Any, told: Mapping[str, Any], actions: Any) -> Any:
        """The same encoder, of ours where there is one."""
        made = super().encoder_instead(made, space, told, actions)
        instead = _INSTEAD.get(type(made))
        if instead is None:
            return made
        return instead(**{field.name: getattr(made, field.name) for field in fields(made)})
