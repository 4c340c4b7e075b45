"""What `ray.rllib.models` had for custom models, and the installed Ray lacks."""

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
    """A TensorFlow model: old code can derive from it, but not make one."""

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
        obs_space: Any,
        action_space: Any,
        num_outputs: int,
        model_config: Mapping[str, Any],
        *args: Any,
        **kwargs: Any,
    ) -> None:
        options = model_config.get("custom_model_config") or {}
        given = obs_space, action_space, num_outputs, {**model_config, "custom_options": options}
        super(made, self).__init__(*given, *args, **kwargs)

    names = {"__module__": model.__module__, "__qualname__": model.__qualname__}
    made: Any = type(model.__name__, (model,), {**names, "__init__": init})
    return made
