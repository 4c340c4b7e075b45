"""The head of a Q-network: what it is by the config, and the steps that compute it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from rllib_compat.networks.graph import Builder
from rllib_compat.networks.named import Named
from rllib_compat.networks.settings import ModelSettings
from rllib_compat.networks.trunks.dense import add_layers
from rllib_compat.neutral.frozen import frozen

#: What takes networks that today's default module does not compute.
MODULE = "rllib_compat.modules:QModule"
#: The same, with states.
RECURRENT = "rllib_compat.modules:R2D2GraphModule"

#: The options of the module beside its network; DQN's own settings by their names.
SETTINGS = ("double_q", "dueling", "num_atoms", "v_min", "v_max")

#: How a module of ours explores: the noise of noisy layers at first, by what
#: Q-values are divided where actions are drawn by them, what noise on weights takes: with what
#: deviation it begins, and whether norms stand in the network for it, as they did.
EXPLORING = ("sigma0", "soft_q_temperature", "parameter_noise")

#: What is added to the variance, by the framework that normalised.
_EPSILON = {"torch": 1e-5, "rl_module": 1e-5, "keras": 1e-3, "list": 1e-3}
_CONTRIB_EPSILON = 1e-12

#: Over which axis of `[actions, atoms]` the advantages are centred: by legacy Rays, and today.
OVER_ACTIONS, OVER_ATOMS = -2, -1


def exploring(model: Mapping[str, Any]) -> dict[str, Any]:
    """The exploration options in a model config; what is no number is left out."""
    found: dict[str, Any] = {k: model[k] for k in EXPLORING[:2] if _is_number(model.get(k))}
    noise = model.get(EXPLORING[2])
    if isinstance(noise, Mapping) and _is_number(noise.get("initial_stddev")):
        norms = {} if noise.get("layer_norm") is not False else {"layer_norm": False}
        found[EXPLORING[2]] = {"initial_stddev": noise["initial_stddev"], **norms}
    return found


def exploring_plainly(options: Mapping[str, Any]) -> dict[str, Any]:
    """The same for a network that is there already, and has no noisy layers and no norms."""
    found = {key: value for key, value in options.items() if key != EXPLORING[0]}
    if noise := found.get(EXPLORING[2]):
        found[EXPLORING[2]] = {**noise, "layer_norm": False}
    return found


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


@frozen
class Head:
    """What the config says of a Q-network behind its base model.

    Attributes:
        hiddens: The sizes of each stream's hidden layers.
        dueling: Whether advantages and the state's value are streams of their own.
        num_atoms: How many atoms each action's distribution has; 1: Q-values.
        v_min: The value of the first atom.
        v_max: The value of the last atom.
        noisy: Whether the layers are noisy.
        norm: Whether layer norm was added (for parameter noise).
    """

    hiddens: tuple[int, ...]
    dueling: bool
    num_atoms: int
    v_min: float
    v_max: float
    noisy: bool
    norm: bool

    @classmethod
    def of(cls, settings: ModelSettings) -> Head:
        """Reads it from a config, with the defaults that all Rays had."""
        config, simple = settings.config, settings.algorithm == "SimpleQ"
        exploration = config.get("exploration_config")
        kind = exploration.get("type") if isinstance(exploration, Mapping) else None
        return cls(
            hiddens=tuple(config.get("hiddens", () if simple else (256,)) or ()),
            dueling=bool(config.get("dueling", True)) and not simple,
            num_atoms=1 if simple else int(config.get("num_atoms", 1)),
            v_min=float(config.get("v_min", -10.0)),
            v_max=float(config.get("v_max", 10.0)),
            noisy=bool(config.get("noisy", False)) and not simple,
            norm=bool(config.get("parameter_noise")) or "ParameterNoise" in str(kind),
        )


def add(
    build: Builder, named: Named, features: str, head: Head, *, centred: int = OVER_ACTIONS
) -> dict[str, str]:
    """Adds the head to a graph.

    Advantages are centred over the axis `centred` of `[actions, atoms]`.

    Returns:
        The outputs: `q_values` `[B, actions]`, and `q_logits` `[B, actions, atoms]` if the values
        are distributions.
    """
    scores = state = features
    if "logits" in named:
        scores = state = build.add("dense", "logits", features)
    if "state" in named and "logits" in named:
        # Ray 0.6 took the state's value from the layer before.
        first = next(iter([*named.layers("state_hidden"), "state"]))
        if named.takes(first) != named.gives("logits"):
            state = features
    if "advantage" in named:
        scores = _add_stream(build, named, "advantage", scores)
    if "state" in named:
        state = _add_stream(build, named, "state", state)
    if head.num_atoms > 1:
        takes = (scores, state) if head.dueling else (scores,)
        settings = {"num_atoms": head.num_atoms, "centred": centred}
        logits = build.add("atoms", "q_logits", *takes, **settings)
        values = build.add("expectation", "q_values", logits, v_min=head.v_min, v_max=head.v_max)
        return {"q_values": values, "q_logits": logits}
    if head.dueling:
        scores = build.add("dueling", "q_values", scores, state)
    return {"q_values": scores}


def _add_stream(build: Builder, named: Named, stream: str, takes: str) -> str:
    """Adds one stream's layers; hidden layers have relu."""
    for layer in named.layers(f"{stream}_hidden"):
        norm = layer.replace("_hidden", "_norm")
        # tf.contrib's layers with a norm have no bias, and relu behind the norm.
        contrib = f"{layer}.bias" not in named.arrays
        takes = add_layers(build, named.arrays, [layer], takes, None if contrib else "relu")
        if f"{norm}.gamma" in named.arrays:
            epsilon = _CONTRIB_EPSILON if contrib else _EPSILON[named.scheme]
            behind = "relu" if contrib else None
            takes = build.add("layer_norm", norm, takes, epsilon=epsilon, activation=behind)
    return add_layers(build, named.arrays, [stream], takes, None)
