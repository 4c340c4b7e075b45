"""What `ray.rllib.models` had for custom models, and the installed Ray lacks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from ray.rllib.models.catalog import ModelCatalog as _Todays

from rllib_compat.neutral.errors import GoneError

__all__ = ["ModelCatalog"]


class ModelCatalog(_Todays):  # type: ignore[misc]  # Ray has no types
    """Ray's catalog, whose models read their options by the key of Ray 0.5 – 0.8.6, too."""

    @staticmethod
    def register_custom_model(model_name: str, model_class: object) -> None:
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


class _RegistersVariables:
    """A model of TensorFlow that may register variables, as it had to until Ray 0.8.

    Ray finds a model's variables by its attributes, and takes registered ones for missing.
    """

    def register_variables(self, variables: Iterable[Any]) -> None:
        """Adds variables to those that Ray finds."""
        registered = self.__dict__.setdefault("_registered", {})
        registered.update(dict.fromkeys(variable.ref() for variable in variables))

    def variables(self, as_dict: bool = False) -> Any:
        """Returns all variables as a list, or as a dict by name."""
        named: dict[str, Any] = super().variables(as_dict=True)  # type: ignore[misc]
        known = {variable.ref() for variable in named.values()}
        others = [ref.deref() for ref in self.__dict__.get("_registered", {}) if ref not in known]
        named |= {variable.name: variable for variable in others}
        return named if as_dict else list(named.values())


def _with_custom_options(model: object) -> Any:
    if not isinstance(model, type):
        return model

    def init(
        self: object,
        obs_space: object,
        action_space: object,
        num_outputs: int,
        model_config: Mapping[str, Any],
        *args: object,
        **kwargs: object,
    ) -> None:
        options = model_config.get("custom_model_config") or {}
        given = obs_space, action_space, num_outputs, {**model_config, "custom_options": options}
        super(made, self).__init__(*given, *args, **kwargs)

    names = {"__module__": model.__module__, "__qualname__": model.__qualname__}
    bases = (_RegistersVariables, model) if hasattr(model, "register_variables") else (model,)
    made: Any = type(model.__name__, bases, {**names, "__init__": init})
    return made
