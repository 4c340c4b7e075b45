"""Encoders of the networks that Ray's catalogs build."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class ChangesEncoders:
    """A base of a catalog, in front of Ray's, that has other encoders in the place of its own."""

    @classmethod
    def encoder_instead(cls, made: Any, space: Any, told: Mapping[str, Any], actions: Any) -> Any:
        """The config of an encoder, or of what makes features for an LSTM.

        Args:
            made: The one that Ray would build.
            space: The observation space.
            told: The model config.
            actions: The action space, which Ray does not tell `get_tokenizer_config`.
        """
        del space, told, actions
        return made

    @classmethod
    def _get_encoder_config(
        cls, observation_space: Any, model_config_dict: Any, action_space: Any = None
    ) -> Any:
        made = super()._get_encoder_config(  # type: ignore[misc]  # of the catalog
            observation_space=observation_space,
            model_config_dict=model_config_dict,
            action_space=action_space,
        )
        return cls.encoder_instead(made, observation_space, model_config_dict, action_space)
