"""What new networks are made of where Ray's own parts are not enough: layers, encoders, weights.

* Dense layers that old keys describe: so many units, and an activation's name.
* Encoders in the place of two of Ray's, with weights of the same names. Images come as
  environments give them: bytes, which layers have to make floats. Every old RLlib did so
  (`VisionNetwork`); Ray's layers fail with bytes. Environments, episodes and replay buffers keep
  bytes, which take a quarter of the memory. And an LSTM spends no time on maps over its two
  states.
* First weights as the old Rays drew them (`normc_initializer`, or Glorot).
* Networks that see the step before where those of the old Rays saw it (`LSTMWrapper`). The
  connector `runtime.previous_steps` puts previous action and reward behind the observation. Here
  they go past the dense layers, into the LSTM. An observation is often small beside a one-hot
  action and the reward: in one layer with them it is hardly seen at first.
* A `ModelV2` of the user's own as the encoder of a recurrent module.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import gymnasium
import torch
import tree
from ray.rllib.core.columns import Columns
from ray.rllib.core.models.base import ENCODER_OUT
from ray.rllib.core.models.catalog import Catalog
from ray.rllib.core.models.configs import CNNEncoderConfig, MLPEncoderConfig, RecurrentEncoderConfig
from ray.rllib.core.models.torch.encoder import TorchCNNEncoder, TorchLSTMEncoder, TorchMLPEncoder
from ray.rllib.models.catalog import MODEL_DEFAULTS, ModelCatalog
from torch import Tensor, nn

from rllib_compat.networks.ops.in_torch import one_hot
from rllib_compat.networks.previous_steps import (
    LOOKING_BACK,
    PREVIOUS_ACTIONS,
    PREVIOUS_REWARDS,
    Previous,
    choices_in,
)
from rllib_compat.neutral.errors import ConfigError
from rllib_compat.ray_versions import modules

_ACTIVATIONS = {
    "elu": nn.ELU,
    "linear": nn.Identity,
    "relu": nn.ReLU,
    "swish": nn.SiLU,
    "tanh": nn.Tanh,
}


def dense_layers(inputs: int, hiddens: list[int], outputs: int, activation: str) -> nn.Sequential:
    """Dense layers that begin as they did: Xavier's weights, no bias; no last activation."""
    if activation not in _ACTIVATIONS:
        raise ConfigError(
            f"The activation {activation!r} is unknown.",
            where="model_config.head_fcnet_activation",
            fix=f"Use one of {', '.join(_ACTIVATIONS)}.",
        )
    made: list[nn.Module] = []
    for before, after in itertools.pairwise([inputs, *hiddens, outputs]):
        made += [nn.Linear(before, after), _ACTIVATIONS[activation]()]
    layers: nn.Sequential = glorot(nn.Sequential(*made[:-1]))
    return layers


@dataclass
class BytesEncoderConfig(CNNEncoderConfig):  # type: ignore[misc]  # Ray has no types
    """Convolutions for images of any numbers."""

    def build(self, framework: str = "torch") -> Any:
        del framework
        return BytesEncoder(self)


class BytesEncoder(TorchCNNEncoder):  # type: ignore[misc]  # Ray has no types
    """What `BytesEncoderConfig` describes."""

    def _forward(self, inputs: Mapping[str, Any], **kwargs: object) -> dict[str, Any]:
        made: dict[str, Any] = super()._forward(
            {**inputs, Columns.OBS: inputs[Columns.OBS].float()}, **kwargs
        )
        return made


@dataclass
class LSTMEncoderConfig(RecurrentEncoderConfig):  # type: ignore[misc]  # Ray has no types
    """An LSTM behind other layers."""

    def build(self, framework: str = "torch") -> Any:
        return (
            LSTMEncoder(self) if self.recurrent_layer_type == "lstm" else super().build(framework)
        )


class LSTMEncoder(TorchLSTMEncoder):  # type: ignore[misc]  # Ray has no types
    """What `LSTMEncoderConfig` describes: `obs` is one array, `state_in` has `h` and `c`."""

    def _forward(self, inputs: Mapping[str, Any], **_: object) -> dict[str, Any]:
        seen, state = inputs[Columns.OBS], inputs[Columns.STATE_IN]
        features = self.tokenizer({Columns.OBS: seen.flatten(0, 1)})[ENCODER_OUT]
        states = state["h"].transpose(0, 1), state["c"].transpose(0, 1)
        out, (h, c) = self.lstm(features.unflatten(0, seen.shape[:2]), states)
        after = {"h": h.transpose(0, 1), "c": c.transpose(0, 1)}
        return {ENCODER_OUT: out, Columns.STATE_OUT: after}


#: Ray's config of an encoder → the one of ours.
_INSTEAD = {CNNEncoderConfig: BytesEncoderConfig, RecurrentEncoderConfig: LSTMEncoderConfig}


class OwnEncoders(modules.EncoderMixin):
    """A base of a catalog whose networks have these."""

    @classmethod
    def replace_encoder(
        cls, made: Any, space: object, options: Mapping[str, Any], actions: object
    ) -> Any:
        """The same encoder, of ours where there is one."""
        made = super().replace_encoder(made, space, options, actions)
        instead = _INSTEAD.get(type(made))
        if instead is None:
            return made
        return instead(**{field.name: getattr(made, field.name) for field in fields(made)})


#: The norm of the weights of each unit of a head.
OF_A_HEAD = 0.01


def init_weights(network: nn.Module, last: float | None = 1.0) -> Any:
    """Draws the weights of dense layers: those of each unit have the norm 1.

    `last` is the norm in its last layer; None: that one is drawn after Glorot, as behind an LSTM.
    """
    layers = _dense(network)
    for layer in layers:
        norm = last if layer is layers[-1] else 1.0
        if norm is None:
            glorot(layer)
            continue
        with torch.no_grad():
            drawn = torch.randn_like(layer.weight)
            layer.weight.copy_(norm * drawn / drawn.norm(dim=1, keepdim=True))
            if layer.bias is not None:
                layer.bias.zero_()
    return network


def glorot(network: nn.Module) -> Any:
    """Draws the weights of dense layers after Glorot, as those of layers without an initializer."""
    for layer in _dense(network):
        torch.nn.init.xavier_uniform_(layer.weight)
        if layer.bias is not None:
            torch.nn.init.zeros_(layer.bias)
    return network


def _dense(network: nn.Module) -> list[Any]:
    return [layer for layer in network.modules() if isinstance(layer, torch.nn.Linear)]


class InitialWeightsMixin:
    """The first base of a catalog whose networks begin as they did.

    Where the model config says how weights are drawn, that is how.
    """

    _model_config_dict: Mapping[str, Any]

    def _init_weights(self, made: nn.Module, last: float | None = 1.0) -> Any:
        """A network with its first weights; see `init_weights`."""
        names = ("fcnet_kernel_initializer", "head_fcnet_kernel_initializer")
        drawn_by_ray = any(map(self._model_config_dict.get, names))
        return made if drawn_by_ray else init_weights(made, last)


@dataclass
class BesideLayersConfig(MLPEncoderConfig):  # type: ignore[misc]  # Ray has no types
    """Dense layers for the first numbers of an observation; the last go past them."""

    beside: int = 0

    @property
    def output_dims(self) -> tuple[int]:
        return (super().output_dims[0] + self.beside,)

    def build(self, framework: str = "torch") -> Any:
        del framework
        return BesideLayers(self)


class BesideLayers(TorchMLPEncoder):  # type: ignore[misc]  # Ray has no types
    """What `BesideLayersConfig` describes; the weights are named as Ray's."""

    def _forward(self, inputs: Mapping[str, Any], **_: object) -> dict[str, Any]:
        whole, count = inputs[Columns.OBS], self.config.input_dims[0]
        return {ENCODER_OUT: torch.cat([self.net(whole[..., :count]), whole[..., count:]], dim=-1)}


class PreviousStepsMixin(modules.EncoderMixin):
    """A base of a catalog: the step before goes into the LSTM of its networks."""

    @classmethod
    def replace_encoder(
        cls, made: Any, space: Any, options: Mapping[str, Any], actions: object
    ) -> Any:
        """The same encoder; where it is to see the step before, its dense layers do not."""
        made = super().replace_encoder(made, space, options, actions)
        beside = numbers_of(options, actions) if options["use_lstm"] else 0
        if not beside:
            return made
        own = gymnasium.spaces.Box(-float("inf"), float("inf"), (space.shape[0] - beside,))
        layers = cls.get_tokenizer_config(own, options)  # type: ignore[attr-defined]  # of the catalog
        values = {field.name: getattr(layers, field.name) for field in fields(layers)}
        return replace(made, tokenizer_config=BesideLayersConfig(**values, beside=beside))


def beside_observation(batch: Mapping[str, Any], actions: object) -> Any:
    """Observations `[…, n]`, with the step before behind them.

    Args:
        batch: `obs`, which has it already, or `prev_actions` `[…, k]` (flattened, as they were
            taken) and `prev_rewards` `[…, 1]` are beside it.
        actions: The action space.
    """
    parts = [batch[Columns.OBS]]
    if PREVIOUS_ACTIONS in batch:
        parts.append(one_hot({}, {"parts": choices_in(actions)}, batch[PREVIOUS_ACTIONS]))
    if PREVIOUS_REWARDS in batch:
        parts.append(batch[PREVIOUS_REWARDS])
    return torch.cat(parts, dim=-1) if parts[1:] else parts[0]


def numbers_of(options: Mapping[str, Any], actions: object) -> int:
    """How many numbers of an observation are of the step before."""
    action, reward = (int(bool(options.get(key))) for key in LOOKING_BACK)
    return Previous(action, reward, choices_in(actions)).size


class EncoderCatalog(PreviousStepsMixin, OwnEncoders, InitialWeightsMixin, Catalog):  # type: ignore[misc]
    """Today's encoders with an LSTM, and the layers behind them, with the old first weights."""

    def build_encoder(self, framework: str) -> Any:
        """The layers below the LSTM, and that."""
        return self._init_weights(super().build_encoder(framework))

    def behind(self, layers: nn.Module) -> Any:
        """Layers behind the LSTM, with their first weights: the last after Glorot."""
        return self._init_weights(layers, None)


#: What a model config names it by.
CUSTOM_MODEL = "custom_model"


class ModelV2Encoder(nn.Module):
    """Runs a recurrent `ModelV2` over sequences `[B, T, …]`, as Ray's encoders with an LSTM run.

    As in old Rays, the model gets all steps of all sequences as one batch `[B * T, …]`, how many of
    them each sequence has, and states `[B, …]`; `use_lstm` puts an LSTM around it.

    Raises:
        ConfigError: It has no states, or asks for more than observations and states.
    """

    def __init__(
        self,
        seen: gymnasium.Space[Any],
        actions: gymnasium.Space[Any],
        outputs: int,
        options: Mapping[str, Any],
        name: str,
    ) -> None:
        super().__init__()
        known = {key: options[key] for key in MODEL_DEFAULTS if options.get(key) is not None}
        config = {**MODEL_DEFAULTS, **known}
        self.model: Any = ModelCatalog.get_model_v2(
            seen, actions, outputs, config, framework="torch", name=name
        )
        asked = {n for n in self.model.view_requirements if not n.startswith(("obs", "state_"))}
        if asked:
            raise ConfigError(
                f"{type(self.model).__name__} needs {', '.join(sorted(asked))}, and gets only "
                "observations and states.",
                where=f"model.{CUSTOM_MODEL}",
                fix="Add these to the observations, in a wrapper of the environment.",
            )
        first = self.model.get_initial_state()
        if not len(first):
            raise ConfigError(
                f"The algorithm needs a recurrent network, and {type(self.model).__name__} has no "
                "initial state.",
                where=f"model.{CUSTOM_MODEL}",
                fix="Return a list of tensors from its get_initial_state().",
            )
        self._first = {f"state_{i}": torch.as_tensor(state) for i, state in enumerate(first)}

    def get_initial_state(self) -> dict[str, Tensor]:
        """What a sequence begins with, without an axis for the batch."""
        return {name: state.detach().float().cpu() for name, state in self._first.items()}

    def forward(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """The model's outputs `[B, T, n]`, and its states after the last step."""
        states = [batch[Columns.STATE_IN][name] for name in self._first]
        count, steps = tree.flatten(batch[Columns.OBS])[0].shape[:2]
        flat = tree.map_structure(lambda part: part.flatten(0, 1), batch[Columns.OBS])
        lengths = torch.full((count,), steps, dtype=torch.int32, device=states[0].device)
        given = {Columns.OBS: flat, "is_training": torch.is_grad_enabled()}
        out, after = self.model(given, states, lengths)
        return {
            ENCODER_OUT: out.unflatten(0, (count, steps)),
            Columns.STATE_OUT: dict(zip(self._first, after, strict=True)),
        }
