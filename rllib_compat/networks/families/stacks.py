"""Policies and critics that are stacks of dense layers, as those of SAC and DDPG."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rllib_compat.networks.graph import CRITIC, POLICY, TWIN, Array, Builder
from rllib_compat.networks.mapping import Table, torch_dense
from rllib_compat.networks.named import Named
from rllib_compat.networks.network import OWN_PREFIX, OWN_TARGET_PREFIX, TARGET_PREFIX
from rllib_compat.networks.trunks.dense import add_layers
from rllib_compat.neutral.report import Finding, Verdict


def module_names(parts: Mapping[str, str], hiddens: Mapping[str, int]) -> Table:
    """The rows of all stacks, and of their targets.

    Args:
        parts: What the module calls each stack.
        hiddens: How many hidden layers each stack has.
    """
    return tuple(
        move
        for ours, theirs in (("", OWN_PREFIX), (TARGET_PREFIX, OWN_TARGET_PREFIX))
        for stack, part in parts.items()
        for move in (
            *torch_dense(f"{theirs}{part}.{2 * hiddens[stack]}", f"{ours}{stack}.out"),
            *torch_dense(f"{theirs}{part}.{{2*i}}", f"{ours}{stack}.hidden.{{i}}"),
        )
    )


def module_names_in(parts: Mapping[str, str], found: Iterable[str]) -> Table:
    """The same for a module that was converted before, by the names of its arrays."""
    weights = [name for name in found if name.endswith(".weight")]
    layers = {
        stack: sum(name.startswith(f"{OWN_PREFIX}{part}.") for name in weights)
        for stack, part in parts.items()
    }
    return module_names(parts, {stack: max(count - 1, 0) for stack, count in layers.items()})


def with_targets(named: Named, *stacks: str) -> tuple[dict[str, Array], list[Finding]]:
    """Completes the arrays of target networks, which start as copies where they are not stored.

    Args:
        named: The arrays.
        stacks: What the names of those arrays begin with that a target follows; none: all.

    Returns:
        All arrays, and what the report says.
    """
    arrays = dict(named.arrays)
    missing = [
        name
        for name in arrays
        if name.startswith(stacks or "")
        and not name.startswith(TARGET_PREFIX)
        and TARGET_PREFIX + name not in arrays
    ]
    if not missing:
        return arrays, []
    message = "the target networks are not stored; they start as copies of those that they follow"
    finding = named.note(message, code="target-network", verdict=Verdict.DERIVED)
    return arrays | {TARGET_PREFIX + name: arrays[name] for name in missing}, [finding]


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
