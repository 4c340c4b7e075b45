"""The module of a config of an old Ray, which becomes that of its network when it is built.

Only then the spaces are known, and with them the network.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import torch

from rllib_compat.networks.families.dense import sequence_length
from rllib_compat.networks.named import BUFFERS
from rllib_compat.networks.network import Network
from rllib_compat.networks.read import draw_network
from rllib_compat.networks.settings import ModelSettings
from rllib_compat.neutral import spaces
from rllib_compat.neutral.errors import CheckpointError, ConfigError
from rllib_compat.neutral.public import public

#: The key of a model config with what `network_of` returned.
NETWORK = "network_of_config"


def network_of(settings: ModelSettings, default: type) -> dict[str, Any]:
    """The options of a `ConfiguredModule` in a model config, as plain data.

    `default` is the module of the installed Ray that takes networks which it can compute.
    """
    return {
        NETWORK: {
            "default": f"{default.__module__}:{default.__qualname__}",
            "algorithm": settings.algorithm,
            "ray": settings.ray,
            "model": dict(settings.model),
            "config": {k: v for k, v in settings.config.items() if k != "model"},
        }
    }


@public("rllib_compat.modules")
class ConfiguredModule:
    """Stands where a config names the class of its modules; none is ever an instance of it.

    Ray calls it as it calls a class, and gets the module that a converted checkpoint with the same
    network has, with new weights. Its `model_config` holds what `network_of` returned.

    Raises:
        ConfigError: The old Ray refused to build the network, too.
    """

    #: The catalog that it is given is for Ray's own modules.
    takes_catalogs = True

    def __new__(
        cls,
        *,
        observation_space: object,
        action_space: object,
        model_config: dict[str, Any],
        catalog_class: object = None,
        **others: object,
    ) -> Any:
        """Builds the module."""
        model_settings = dict(model_config)
        given = model_settings.pop(NETWORK)
        settings = _settings(given)
        network = new_network(settings, original(observation_space), action_space)
        target, length = network.target, sequence_length(settings)
        module_class = _class(target.module or given["default"])
        module = module_class(
            observation_space=observation_space,
            action_space=action_space,
            # Deviations apart from the observation are asked of networks that have them.
            model_config={
                **model_settings,
                "free_log_std": False,
                "max_seq_len": length,
                **target.model_config,
            },
            # Modules of ours are given their network; no catalog has to choose one.
            catalog_class=catalog_class if target.module is None else None,
            **others,
        )
        begin(module, network)
        return module


def _settings(given: dict[str, Any]) -> ModelSettings:
    """The reverse of `network_of`."""
    config = {**given["config"], "model": given["model"]}
    return ModelSettings.from_config(config, {}, algorithm=given["algorithm"], ray=given["ray"])


def original(space: object) -> Any:
    """A space before it was flattened."""
    return getattr(space, "original_space", space)


def new_network(
    settings: ModelSettings, observation_space: object, action_space: object
) -> Network:
    """A new network for spaces of gymnasium, with weights that torch's seed decides.

    Raises:
        ConfigError: The old Ray refused to build it, too, or there is no network for the spaces.
    """
    seen, acts = (spaces.from_object(space) for space in (observation_space, action_space))
    for kind, space, found in (
        ("observation_space", observation_space, seen),
        ("action_space", action_space, acts),
    ):
        if found is None:
            raise ConfigError(
                f"The new API stack has no network for the space {space}.",
                where=kind,
                fix="Use Box, Discrete, MultiDiscrete, MultiBinary, Tuple or Dict; or pass "
                "api_stack='old', if Ray's old networks take it.",
            )
    assert seen is not None and acts is not None  # noqa: PT018 - distinguished above
    rng = np.random.default_rng(int(torch.randint(2**62, ()).item()))
    try:
        return draw_network(settings, seen, acts, rng)
    except CheckpointError as error:
        # It is a config that does not say what it should, not a checkpoint.
        raise ConfigError(error.found, where=error.where, fix=error.fix) from error


def _class(name: str) -> Any:
    module, _, cls = name.partition(":")
    # A checkpoint keeps model configs, and a text from a file must not import code.
    if not module.startswith(("ray.rllib.", "rllib_compat.")):
        raise ConfigError(
            f"{name!r} is not a module of RLlib or of this package.",
            where=f"model_config[{NETWORK!r}]",
            fix="Set your own module with RLModuleSpec(module_class=…).",
        )
    return getattr(import_module(module), cls)


def begin(module: Any, network: Network) -> None:
    """Gives a module the first weights of a network, as far as it has them."""
    state, new = module.get_state(), network.module_state()
    lacking = [name for name in state if name not in new and name not in BUFFERS]
    assert not lacking, f"{type(module).__name__} begins without {lacking}"
    first = {name: np.array(new[name], order="C") for name in state if name in new}
    module.set_state({**state, **first})
