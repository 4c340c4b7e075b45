"""The head of a Q-network: what it is by the config, and the steps that compute it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rllib_compat.networks.graph import Array, Builder
from rllib_compat.networks.settings import ModelSettings

#: What is added to the variance, by the framework that normalised.
_EPSILON = {"torch": 1e-5, "keras": 1e-3, "list": 1e-3}
_CONTRIB_EPSILON = 1e-12

#: Over which axis of `[actions, atoms]` legacy Rays centred the advantages.
OVER_ACTIONS = -2


@dataclass(frozen=True)
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


def width_of(arrays: Mapping[str, Array], *layers: str) -> int:
    """How many numbers the first of these layers that there is gives."""
    return int(next(arrays[f"{n}.kernel"].shape[1] for n in layers if f"{n}.kernel" in arrays))


def hiddens_of(arrays: Mapping[str, Array]) -> list[int]:
    """The sizes of each stream's hidden layers, as they are."""
    names = (f"advantage_hidden.{i}.kernel" for i in range(len(arrays)))
    return [int(arrays[name].shape[1]) for name in names if name in arrays]


def add(
    build: Builder,
    arrays: Mapping[str, Array],
    features: str,
    head: Head,
    scheme: str,
    *,
    centred: int = OVER_ACTIONS,
) -> dict[str, str]:
    """Adds the head to a graph.

    Args:
        build: Collects the steps.
        arrays: The canonical arrays (see `q_names`).
        features: The name of what the base model gives.
        head: What the config says.
        scheme: In which scheme the arrays were named.
        centred: Over which axis of `[actions, atoms]` the advantages are centred.

    Returns:
        The outputs: `q_values` `[B, actions]`, and `q_logits` `[B, actions, atoms]` if the values
        are distributions.
    """
    scores = state = features
    if "logits.kernel" in arrays:
        scores = state = build.add("dense", "logits", features)
    if "state.kernel" in arrays and "logits.kernel" in arrays:
        # Ray 0.6 took the state's value from the layer before.
        first = "state_hidden.0" if "state_hidden.0.kernel" in arrays else "state"
        if arrays[f"{first}.kernel"].shape[0] != arrays["logits.kernel"].shape[1]:
            state = features
    if "advantage.kernel" in arrays:
        scores = _add_stream(build, arrays, "advantage", scores, scheme)
    if "state.kernel" in arrays:
        state = _add_stream(build, arrays, "state", state, scheme)
    if head.num_atoms > 1:
        takes = (scores, state) if head.dueling else (scores,)
        settings = {"num_atoms": head.num_atoms, "centred": centred}
        logits = build.add("atoms", "q_logits", *takes, **settings)
        values = build.add("expectation", "q_values", logits, v_min=head.v_min, v_max=head.v_max)
        return {"q_values": values, "q_logits": logits}
    if head.dueling:
        scores = build.add("dueling", "q_values", scores, state)
    return {"q_values": scores}


def _add_stream(
    build: Builder, arrays: Mapping[str, Array], stream: str, takes: str, scheme: str
) -> str:
    """Adds one stream's layers; hidden layers have relu."""
    number = 0
    while f"{stream}_hidden.{number}.kernel" in arrays:
        layer, norm = f"{stream}_hidden.{number}", f"{stream}_norm.{number}"
        normed = f"{norm}.gamma" in arrays
        # tf.contrib's layers with a norm have no bias, and relu behind the norm.
        contrib = f"{layer}.bias" not in arrays
        activation = None if contrib else "relu"
        takes = build.add(_op(arrays, layer), layer, takes, activation=activation)
        if normed:
            epsilon = _CONTRIB_EPSILON if contrib else _EPSILON[scheme]
            activation = "relu" if contrib else None
            takes = build.add("layer_norm", norm, takes, epsilon=epsilon, activation=activation)
        number += 1
    return build.add(_op(arrays, stream), stream, takes)


def _op(arrays: Mapping[str, Array], layer: str) -> str:
    return "noisy_dense" if f"{layer}.sigma_kernel" in arrays else "dense"
