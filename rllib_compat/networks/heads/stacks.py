"""Policies and critics that are stacks of dense layers, as those of SAC and DDPG."""

from __future__ import annotations

from collections.abc import Sequence

from rllib_compat.networks.graph import Builder
from rllib_compat.networks.named import Named
from rllib_compat.networks.names.stacks import CRITIC, POLICY, TWIN
from rllib_compat.networks.trunks.dense import add_layers

#: What each of them gives.
OUTPUTS = {POLICY: "action_dist_inputs", CRITIC: "q_values", TWIN: "twin_q_values"}


def layers_of(named: Named, stack: str) -> list[str]:
    """The layers of a stack, first to last."""
    return [layer for layer in (*named.layers(f"{stack}.hidden"), f"{stack}.out") if layer in named]


def add_critics(
    build: Builder,
    named: Named,
    takes: str,
    activation: str | Sequence[str],
    *,
    of_actions: bool,
) -> dict[str, str]:
    """Adds the critic, and its twin if there is one, and returns their outputs.

    Args:
        build: Collects the steps.
        named: The arrays.
        takes: The observation, or the features that go in.
        activation: The activation of all hidden layers, or of each.
        of_actions: Whether a critic takes the actions, too, and gives one number for them;
            otherwise it gives one for each action.
    """
    if of_actions:
        takes = build.add("concat", "q_inputs", takes, "actions")
    made = {}
    for stack in (CRITIC, TWIN):
        if f"{stack}.out" in named:
            made[OUTPUTS[stack]] = add_stack(build, named, stack, takes, activation)
            if of_actions:
                scalar = build.add("scalar", OUTPUTS[stack], made[OUTPUTS[stack]])
                made[OUTPUTS[stack]] = scalar
    return made


def add_stack(
    build: Builder, named: Named, stack: str, takes: str, activation: str | Sequence[str]
) -> str:
    """Adds a stack of dense layers, the last of which is linear."""
    hidden = add_layers(build, named.arrays, named.layers(f"{stack}.hidden"), takes, activation)
    return build.add("dense", f"{stack}.out", hidden)


def describe(named: Named, stack: str) -> str:
    """The sizes of a stack, for tables: `3-32-24-2`."""
    layers = layers_of(named, stack)
    return "-".join(map(str, (named.takes(layers[0]), *map(named.gives, layers))))
