"""The modules of R2D2: recurrent Q-networks, unrolled over whole sequences.

Kapturowski et al., "Recurrent experience replay in distributed reinforcement learning" (2019).
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import gymnasium
import torch
from ray.rllib.core.columns import Columns
from ray.rllib.core.models.base import ENCODER_OUT
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
from ray.rllib.utils.schedules.scheduler import Scheduler
from torch import Tensor, nn

from rllib_compat.networks.modules.exploration import noise, noisy_layers
from rllib_compat.networks.modules.graph_module import ModuleWithTarget
from rllib_compat.networks.modules.layers import (
    CUSTOM_MODEL,
    EncoderCatalog,
    ModelV2Encoder,
    dense_layers,
    glorot,
)
from rllib_compat.networks.modules.q import QF_PREDS, QModule
from rllib_compat.neutral.errors import ConfigError
from rllib_compat.neutral.public import public
from rllib_compat.ray_versions import modules

#: What the targets say of all actions, `[B, T, actions]`; `QF_PREDS` are the network's own values.
TARGETS = "qf_target_preds"


class _Unrolled:
    """What both modules do with the values that they compute: they act by them, and unroll them."""

    def values_of(self, batch: dict[str, Any], *, target: bool = False) -> tuple[Tensor, Any]:
        """The values of all actions `[B, T, actions]`, and the states after the last step.

        The batch has `obs` `[B, T, …]` and `state_in`.
        """
        module: Any = self
        out = module.forward_target(batch) if target else module.compute_q_values(batch)
        return out[QF_PREDS], out[Columns.STATE_OUT]

    def _forward(self, batch: dict[str, Any], **_: object) -> dict[str, Any]:
        values, states = self.values_of(batch)
        return {Columns.ACTIONS: values.argmax(-1), Columns.STATE_OUT: states}

    def _forward_inference(self, batch: dict[str, Any], **_: object) -> dict[str, Any]:
        return self._forward(batch)

    def _forward_exploration(
        self, batch: dict[str, Any], t: int = 0, **_: object
    ) -> dict[str, Any]:
        """Acts at random with probability epsilon; soft Q draws actions by their values."""
        module: Any = self
        temperature = module.model_config.get("soft_q_temperature")
        with noise(*noisy_layers(module)):
            return modules.explore(module, batch, t, temperature=temperature)

    def _forward_train(self, batch: dict[str, Any], **_: object) -> dict[str, Any]:
        module: Any = self
        with noise(*noisy_layers(module)):
            values, _states = self.values_of(batch)
            with torch.no_grad():
                targets, _states = self.values_of(batch, target=True)
        return {QF_PREDS: values, TARGETS: targets}


@public("rllib_compat.modules")
class R2D2Module(_Unrolled, ModuleWithTarget):
    """A Q-network with an LSTM.

    The installed Ray's encoder for the observations, with its LSTM (`use_lstm`), and a linear
    layer; or a recurrent `ModelV2` (`custom_model`). Behind that the layers that RLlib had: a
    stream for the Q-values or, with `dueling`, one for the advantages and one for the state's
    value (`hiddens`, rectified). `epsilon` is a number, or a schedule `[[step, epsilon], …]`.
    """

    def setup(self) -> None:
        options = {**asdict(DefaultModelConfig()), **self.model_config}
        if not isinstance(self.action_space, gymnasium.spaces.Discrete):
            raise ConfigError(
                f"R2D2 has Discrete actions, not {self.action_space}.",
                where="action_space",
                fix="Train with SAC.",
            )
        if options.get("sigma0") is not None:
            raise ConfigError(
                "The new networks of R2D2 have no noisy layers.",
                where="model_config.sigma0",
                fix="Remove the key, or use the networks of an old Ray: legacy_ray='1.13.0'.",
            )
        own = options.get(CUSTOM_MODEL)
        if not (options["use_lstm"] or own):
            raise ConfigError(
                "R2D2 trains recurrent networks, and this one has no LSTM.",
                where="model.use_lstm",
                fix="use_lstm=True",
            )
        actions, sizes = int(self.action_space.n), list(options["hiddens"] or ())
        # As RLlib's: as wide as the layers below; without layers above it gives the values.
        width = [256, *options["fcnet_hiddens"]][-1] if sizes else actions
        spaces = self.observation_space, self.action_space
        networks: dict[str, nn.Module]
        if own:
            encoder = ModelV2Encoder(*spaces, width, options, "model")
            networks = {"encoder": encoder, "logits": nn.Identity()}
        else:
            networks = {
                "encoder": EncoderCatalog(*spaces, options).build_encoder(framework="torch"),
                "logits": glorot(nn.Linear(options["lstm_cell_size"], width)),
            }
        if sizes:
            networks["advantage"] = dense_layers(width, sizes, actions, "relu")
        if sizes and options["dueling"]:
            networks["state"] = dense_layers(width, sizes, 1, "relu")
        self.net = nn.ModuleDict(networks)
        self.epsilon_schedule = Scheduler(
            fixed_value_or_schedule=options["epsilon"], framework="torch"
        )

    def get_initial_state(self) -> Any:
        encoder: Any = self.net["encoder"]
        return encoder.get_initial_state()

    def compute_q_values(self, batch: dict[str, Any]) -> dict[str, Any]:
        """The values `qf_preds` `[B, T, actions]`, and the states after the last step."""
        return _computed(self.net, batch)

    def forward_target(self, batch: dict[str, Any]) -> dict[str, Any]:
        return _computed(self.target_net, batch)


def _computed(net: nn.ModuleDict, batch: dict[str, Any]) -> dict[str, Any]:
    encoded = net["encoder"](batch)
    values = net["logits"](encoded[ENCODER_OUT])
    if "advantage" in net:
        values, features = net["advantage"](values), values
        if "state" in net:
            values = values - values.mean(-1, keepdim=True) + net["state"](features)
    return {QF_PREDS: values, Columns.STATE_OUT: encoded[Columns.STATE_OUT]}


@public("rllib_compat.modules")
class R2D2GraphModule(_Unrolled, QModule):
    """A legacy Q-network with an LSTM, as it was; its `model_config` is that of `QModule`."""
