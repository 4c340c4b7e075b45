"""What a config asks new networks to be: an old Ray's, or what only today's Ray has.

Those of an old Ray are drawn and read by `networks.read`. Recordings of real Rays are in
`tests/legacy/new_networks/`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rllib_compat import registry
from rllib_compat.networks.families import actor_critic
from rllib_compat.networks.read import drawer

#: The networks that a config of the installed Ray describes, too: their modules draw them.
_AS_TODAY = ("crr", "maddpg")

#: The keys of a config, beside `model`, that networks depend on.
_KEYS = (
    *("Q_model", "_use_beta_distribution", "actor_hidden_activation", "actor_hiddens"),
    *("critic_hidden_activation", "critic_hiddens", "double_q", "dueling", "fcnet_hiddens"),
    *("framework", "hiddens", "noisy", "normalize_actions", "num_actions", "num_atoms"),
    *("parameter_noise", "policy_model", "policy_type", "q_model_config", "policy_model_config"),
    *("sigma0", "twin_q", "use_pytorch", "use_state_preprocessor", "v_max"),
    *("v_min", "vf_share_layers"),
)


def of_networks(config: Mapping[str, Any]) -> dict[str, Any]:
    """What of a config networks depend on, as plain data."""
    found = {key: config[key] for key in _KEYS if key in config}
    exploration = config.get("exploration_config")
    if isinstance(exploration, Mapping) and "ParameterNoise" in str(exploration.get("type")):
        found["parameter_noise"] = True
    model = config.get("model")
    if isinstance(model, Mapping):
        found["model"] = {k: v for k, v in model.items() if not k.startswith("custom_")}
    return found


#: What only networks of the installed Ray have, or draw their first weights by.
_TODAYS = re.compile(
    r".*_initializer(_config|_kwargs)?|(head|fusion)(_fc)?net_hiddens|.*_use_layernorm|_model_config.*"
)


def only_todays(config: Mapping[str, Any]) -> list[str]:
    """The keys of a config, and of its `model`, that ask for networks that no old Ray had."""
    model = config.get("model")
    keys = {**config, **(model if isinstance(model, Mapping) else {})}
    return [key for key, value in keys.items() if value and _TODAYS.fullmatch(str(key))]


def makes(algorithm: str, config: Mapping[str, Any]) -> bool:
    """Whether new networks of an algorithm and a legacy config are made here.

    None is where the model is the user's own.
    """
    sections = (config.get(section) for section in ("model", "policy_model", "Q_model"))
    if any(isinstance(one, Mapping) and one.get("custom_model") for one in sections):
        return False
    described = registry.of(algorithm).reader in _AS_TODAY
    return drawer(algorithm) is not None and not described and not only_todays(config)


def takes_attention(algorithm: str) -> bool:
    """Whether new networks of an algorithm may have an attention net, which trains here."""
    of_policies = drawer(algorithm) is actor_critic.draw and not registry.of(algorithm).offline
    return of_policies or algorithm == "R2D2"


def attends(algorithm: str, config: Mapping[str, Any]) -> bool:
    """Whether new networks of an algorithm have an attention net, as a legacy config asks.

    SAC's never looked at the key.
    """
    model = config.get("model")
    asked = isinstance(model, Mapping) and bool(model.get("use_attention"))
    return asked and takes_attention(algorithm)
