"""Dense layers: the fully connected network of every RLlib, and the stacks of any head.

RLlib's fully connected network (`ray/rllib/models/**/fcnet.py`, 0.5 – 2.x) is a stack of dense
layers, all with one activation. Canonical arrays are `hidden.{i}`; on TensorFlow the last is
called `fc_out` where a head follows (Ray 0.7 – 2.x): canonical `out`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat

from rllib_compat.networks import refusals
from rllib_compat.networks.graph import Array, Builder
from rllib_compat.networks.mapping import Move, keras, torch_dense
from rllib_compat.networks.named import Named
from rllib_compat.networks.trunks.trunk import Trunk

#: The operation that a layer is, by an array that only it has.
_KINDS = (("beta", "sloped_dense"), ("sigma_kernel", "noisy_dense"))


def add_layers(
    build: Builder,
    arrays: Mapping[str, Array],
    names: Iterable[str],
    takes: str,
    activation: str | Sequence[str | None] | None,
    **settings: bool,
) -> str:
    """Adds dense layers one behind the other: the one place that makes a stack of them.

    Args:
        build: Collects the steps.
        arrays: The canonical arrays. A layer with a `beta` has RLlib's own swish, whose slope was
            trained; one with a `sigma_kernel` is noisy.
        names: The names of the layers, first to last.
        takes: The value that goes in.
        activation: The activation of all layers, or of each.
        settings: More settings for each step.

    Returns:
        The name of the last layer's value; what goes in, where there are no layers.
    """
    plain = activation is None or isinstance(activation, str)
    each: Iterable[str | None] = repeat(activation) if plain else activation  # type: ignore[arg-type,assignment]
    for name, own in zip(names, each, strict=False):
        op = next((op for part, op in _KINDS if f"{name}.{part}" in arrays), "dense")
        told = {} if op == "sloped_dense" else {"activation": own}
        takes = build.add(op, name, takes, **told, **settings)
    return takes


def _layers(named: Named, prefix: str) -> list[str]:
    return [*named.layers(f"{prefix}hidden"), *(n for n in (f"{prefix}out",) if n in named)]


def _inputs(named: Named) -> tuple[int, ...]:
    for first in _layers(named, ""):
        return (named.takes(first),)
    space = named.policy.observation_space
    if space is None:
        raise refusals.needed(
            "The network has no hidden layers; its observation space has to be given.",
            "observation",
            f"policies.{named.policy.policy_id}.observation_space",
        )
    return (space.flat_size(),)


def _add(build: Builder, named: Named, prefix: str = "", takes: str = "obs") -> str:
    layers = _layers(named, prefix)
    return add_layers(build, named.arrays, layers, takes, named.settings.activation)


DENSE = Trunk(
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
    inputs=_inputs,
    add=_add,
)
