"""A `ModelV2` of the user's own as the encoder of a recurrent module."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
import tree
from ray.rllib.core.columns import Columns
from ray.rllib.core.models.base import ENCODER_OUT
from ray.rllib.models.catalog import MODEL_DEFAULTS, ModelCatalog
from torch import Tensor, nn

from rllib_compat.neutral.errors import ConfigError

if TYPE_CHECKING:
    import gymnasium

#: What a model config names it by.
CUSTOM_MODEL = "custom_model"


class ModelV2Encoder(nn.Module):
    """Runs a recurrent `ModelV2` over sequences `[B, T, …]`, as Ray's encoders with an LSTM run.

    As in old Rays, the model gets all steps of all sequences as one batch `[B * T, …]`, how many of
    them each sequence has, and states `[B, …]`; `use_lstm` puts an LSTM around it.

    Args:
        seen: The observations.
        actions: The actions.
        outputs: How many numbers it gives for each step.
        options: The model config: its class or registered name (`custom_model`), and its arguments
            (`custom_model_config`).
        name: Its name.

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
