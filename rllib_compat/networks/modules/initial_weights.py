"""How weights of networks of the old Rays were first drawn (`normc_initializer`, or Glorot)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from ray.rllib.core.models.catalog import Catalog

from rllib_compat.networks.modules.encoders import OwnEncoders
from rllib_compat.networks.modules.previous_steps import SeesPreviousSteps

#: The norm of the weights of each unit of a head.
OF_A_HEAD = 0.01


def begun(network: Any, last: float | None = 1.0) -> Any:
    """Draws the weights of dense layers: those of each unit have the norm 1.

    Args:
        network: What has the layers.
        last: The norm in its last layer; None: that one is drawn after Glorot, as behind an LSTM.
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


def glorot(network: Any) -> Any:
    """Draws the weights of dense layers after Glorot, as those of layers without an initializer."""
    for layer in _dense(network):
        torch.nn.init.xavier_uniform_(layer.weight)
        if layer.bias is not None:
            torch.nn.init.zeros_(layer.bias)
    return network


def _dense(network: Any) -> list[Any]:
    return [layer for layer in network.modules() if isinstance(layer, torch.nn.Linear)]


class BeginsAsBefore:
    """The first base of a catalog whose networks begin as they did.

    Where the model config says how weights are drawn, that is how.
    """

    _model_config_dict: Mapping[str, Any]

    def _begun(self, made: Any, last: float | None = 1.0) -> Any:
        """A network with its first weights; see `begun`."""
        names = ("fcnet_kernel_initializer", "head_fcnet_kernel_initializer")
        drawn_by_ray = any(map(self._model_config_dict.get, names))
        return made if drawn_by_ray else begun(made, last)


class EncoderCatalog(SeesPreviousSteps, OwnEncoders, BeginsAsBefore, Catalog):  # type: ignore[misc]
    """Today's encoders with an LSTM, and what stands behind them, which begin as before."""

    def build_encoder(self, framework: str) -> Any:
        """The layers below the LSTM, and that."""
        return self._begun(super().build_encoder(framework))

    def behind(self, layers: Any) -> Any:
        """Layers behind the LSTM, with their first weights: the last after Glorot."""
        return self._begun(layers, None)
