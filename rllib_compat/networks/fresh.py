"""New networks, as a config of an old Ray began with: a config, spaces and a Ray → a network.

A new policy is made as that Ray's torch policy was: its arrays by the names they had, in their
shapes, with the numbers that were drawn for them. Then it is read like one from a checkpoint
(`networks.read`), so both become the same graph in the same module.

What was recorded of real Rays stands in `tests/legacy/new_networks/`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from rllib_compat import registry
from rllib_compat.networks.drawing import Arrays
from rllib_compat.networks.families.actor_critic import draw_actor_critic
from rllib_compat.networks.families.crr import draw_critic_regularized
from rllib_compat.networks.families.ddpg import draw_deterministic
from rllib_compat.networks.families.evolution import draw_evolved
from rllib_compat.networks.families.maddpg import draw_agent
from rllib_compat.networks.families.q import draw_q_network
from rllib_compat.networks.families.sac import draw_soft_actor_critic
from rllib_compat.networks.network import Network
from rllib_compat.networks.read import read
from rllib_compat.networks.settings import ModelSettings
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.spaces import Space

#: By the reader that an algorithm's row names: what draws the arrays of its policies.
DRAWN_BY: Mapping[str, Callable[[Arrays, ModelSettings, Space, Space], None]] = {
    "actor_critic": draw_actor_critic,
    "appo": draw_actor_critic,
    "bc": draw_actor_critic,
    "crr": draw_critic_regularized,
    "ddpg": draw_deterministic,
    "evolution": draw_evolved,
    "maddpg": draw_agent,
    "marwil": draw_actor_critic,
    "q": draw_q_network,
    "sac": draw_soft_actor_critic,
}

#: The networks that a config of today describes, too: their modules draw them by themselves.
_AS_TODAY = ("crr", "maddpg")

#: The keys of a config, beside `model`, that networks depend on.
_KEYS = (
    "Q_model",
    "_use_beta_distribution",
    "actor_hidden_activation",
    "actor_hiddens",
    "critic_hidden_activation",
    "critic_hiddens",
    "double_q",
    "dueling",
    "fcnet_hiddens",
    "framework",
    "hiddens",
    "noisy",
    "normalize_actions",
    "num_actions",
    "num_atoms",
    "parameter_noise",
    "policy_model",
    "policy_type",
    "q_model_config",
    "policy_model_config",
    "sigma0",
    "twin_q",
    "use_pytorch",
    "use_state_preprocessor",
    "v_max",
    "v_min",
    "vf_share_layers",
)


def of_networks(config: Mapping[str, Any]) -> dict[str, Any]:
    """What of a config networks depend on, as plain data."""
    found = {key: config[key] for key in _KEYS if key in config}
    if _explores_by_weights(config.get("exploration_config")):
        found["parameter_noise"] = True
    model = config.get("model")
    if isinstance(model, Mapping):
        found["model"] = {k: v for k, v in model.items() if not k.startswith("custom_")}
    return found


def _explores_by_weights(exploration: object) -> bool:
    return isinstance(exploration, Mapping) and "ParameterNoise" in str(exploration.get("type"))


#: What only networks of today have, or draw their first weights by.
_TODAYS = re.compile(
    r".*_initializer(_config|_kwargs)?|(head|fusion)(_fc)?net_hiddens|.*_use_layernorm|_model_config.*"
)


def only_todays(config: Mapping[str, Any]) -> list[str]:
    """The keys of a config, and of its `model`, that ask for networks that no old Ray had."""
    model = config.get("model")
    keys = {**config, **(model if isinstance(model, Mapping) else {})}
    return [key for key, value in keys.items() if value and _TODAYS.fullmatch(str(key))]


def makes(algorithm: str, config: Mapping[str, Any]) -> bool:
    """Whether new networks of an algorithm and a legacy config are made here."""
    reader = registry.of(algorithm).reader
    return reader in DRAWN_BY and reader not in _AS_TODAY and not only_todays(config)


def attends(algorithm: str, config: Mapping[str, Any]) -> bool:
    """Whether new networks of an algorithm have an attention net, as a legacy config asks.

    SAC's never looked at the key.
    """
    model = config.get("model")
    asked = isinstance(model, Mapping) and bool(model.get("use_attention"))
    return asked and DRAWN_BY.get(registry.of(algorithm).reader) is draw_actor_critic


def policy(
    settings: ModelSettings, observations: Space, actions: Space, rng: np.random.Generator
) -> PolicyState:
    """A new policy.

    Args:
        settings: What the config says of its network.
        observations: The environment's observations; `original_space` where they are flattened.
        actions: Its actions.
        rng: Draws the first weights.

    Raises:
        ConfigError: The old Ray refused to build the network, too.
    """
    arrays = Arrays(rng)
    DRAWN_BY[registry.of(settings.algorithm).reader](arrays, settings, observations, actions)
    return PolicyState(
        "new", dict(arrays.drawn), observation_space=observations, action_space=actions
    )


def network(
    settings: ModelSettings, observations: Space, actions: Space, rng: np.random.Generator
) -> Network:
    """The network of a new policy; see `policy`."""
    return read(policy(settings, observations, actions, rng), settings).known
