"""What `ray.rllib.models` had for models of one's own, and today's Ray has not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from ray.rllib.models.catalog import ModelCatalog as _Todays
from ray.rllib.models.tf.tf_modelv2 import TFModelV2 as _TodaysTFModel

from rllib_compat.neutral.errors import GoneError

__all__ = ["ModelCatalog", "TFModelV2"]


class ModelCatalog(_Todays):  # type: ignore[misc]  # Ray has no types
    """Ray's catalog, whose models read their options by the key of Ray 0.5 – 0.8.6, too."""

    @staticmethod
    def register_custom_model(model_name: str, model_class: Any) -> None:
        """Registers a model by a name, which a config gives as `custom_model`."""
        _Todays.register_custom_model(model_name, _with_custom_options(model_class))

    @staticmethod
    def register_custom_preprocessor(preprocessor_name: str, preprocessor_class: type) -> NoReturn:
        """Custom preprocessors were removed in Ray 2.0.

        Raises:
            GoneError: Always.
        """
        raise GoneError(
            f"Custom preprocessors ({preprocessor_class.__name__}) are gone.",
            where=f"ModelCatalog.register_custom_preprocessor({preprocessor_name!r})",
            fix="put its transform() into a gym.ObservationWrapper around the environment",
        )


class TFModelV2(_TodaysTFModel):  # type: ignore[misc]  # Ray has no types
    """A custom model on TensorFlow: it can be derived from, and not be made."""

    def __init__(self, *_: object, **__: object) -> None:
        raise GoneError(
            f"{type(self).__name__} is a model for TensorFlow, and policies are torch's.",
            where=type(self).__name__,
            fix="write it with torch (TorchModelV2), and leave the rest of the config as it is",
        )


def _with_custom_options(model: Any) -> Any:
    if not isinstance(model, type):
        return model

    def init(
        self: Any,
        seen: Any,
        acts: Any,
        outputs: Any,
        told: Mapping[str, Any],
        *more: Any,
        **own: Any,
    ) -> None:
        told = {**told, "custom_options": told.get("custom_model_config") or {}}
        super(made, self).__init__(seen, acts, outputs, told, *more, **own)

    names = {"__module__": model.__module__, "__qualname__": model.__qualname__}
    made: Any = type(model.__name__, (model,), {**names, "__init__": init})
    return made
