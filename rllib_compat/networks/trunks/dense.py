"""The base models of RLlib: what turns an observation into features, before any head.

A trunk is the same under each head (an actor-critic's, DQN's, an LSTM around it), so it is
described once: its names in every scheme, and the steps that compute it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rllib_compat.networks.graph import Array, Builder
from rllib_compat.networks.mapping import Move, Table, keras, torch_dense
from rllib_compat.networks.settings import ModelSettings
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.errors import CheckpointError


@dataclass(frozen=True)
class Trunk:
    """One kind of base model.

    Attributes:
        kind: What it is, in a word or two.
        tables: Its arrays' names in each scheme (`slim`, `keras`, `torch`); canonical names may
            carry a prefix (`value_hidden.0.kernel` is the first layer of a value trunk).
        inputs: The shape of the observation that the arrays take. Takes the canonical arrays, the
            policy and its settings.
        add: Adds its steps to a graph, and returns the name of the features. Takes the builder,
            the canonical arrays, the policy, its settings, and the prefix of the arrays' names.
    """

    kind: str
    tables: Mapping[str, Table]
    inputs: Callable[[Mapping[str, Array], PolicyState, ModelSettings], tuple[int, ...]]
    add: Callable[[Builder, Mapping[str, Array], PolicyState, ModelSettings, str], str]


def _fully_connected_inputs(
    arrays: Mapping[str, Array], _: PolicyState, __: ModelSettings
) -> tuple[int, ...]:
    first = arrays.get("hidden.0.kernel", arrays.get("out.kernel"))
    if first is None:
        raise CheckpointError("The first layer is missing.", where=FULLY_CONNECTED.kind)
    return (int(first.shape[0]),)


def _add_fully_connected(
    build: Builder,
    arrays: Mapping[str, Array],
    _: PolicyState,
    settings: ModelSettings,
    prefix: str,
) -> str:
    name, layers = "obs", 0
    while f"{prefix}hidden.{layers}.kernel" in arrays:
        layer = f"{prefix}hidden.{layers}"
        if f"{layer}.beta" in arrays:
            name = build.add("sloped_dense", layer, name)
        else:
            name = build.add("dense", layer, name, activation=settings.activation)
        layers += 1
    if f"{prefix}out.kernel" in arrays:
        name = build.add("dense", f"{prefix}out", name, activation=settings.activation)
    return name


#: Dense layers (`ray/rllib/models/**/fcnet.py`). On TensorFlow the last of them is called `fc_out`
#: where a head follows (Ray 0.7 – 2.x): canonical `out`.
FULLY_CONNECTED = Trunk(
    kind="fully connected",
    tables={
        "slim": (
            Move("fc{i+1}/weights", "hidden.{i}.kernel"),
            Move("fc{i+1}/biases", "hidden.{i}.bias"),
        ),
        "keras": (
            *keras("fc_{i+1}", "hidden.{i}"),
            *keras("fc_out", "out"),
            *keras("fc_value_{i+1}", "value_hidden.{i}"),
        ),
        "torch": (
            *torch_dense("_hidden_layers.{i}._model.0", "hidden.{i}"),
            *torch_dense("_value_branch_separate.{i}._model.0", "value_hidden.{i}"),
            # Ray 1.0 – 2.x trained the slope of torch's swish.
            Move("_hidden_layers.{i}._model.1._beta", "hidden.{i}.beta"),
            Move("_value_branch_separate.{i}._model.1._beta", "value_hidden.{i}.beta"),
        ),
    },
    inputs=_fully_connected_inputs,
    add=_add_fully_connected,
)
