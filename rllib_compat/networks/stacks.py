"""Stacks of dense layers, as the policies and critics of SAC and DDPG are made of.

A stack's canonical arrays are `<stack>.hidden.<i>.kernel` and `.bias`, and `<stack>.out.…` for the
last, linear layer. `pi` is the policy, `q` and `twin_q` are the critics, and `state` is what turns
observations into features for all of them (`use_state_preprocessor`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rllib_compat.networks.graph import Array, Builder
from rllib_compat.neutral.errors import CheckpointError

POLICY, CRITIC, TWIN, STATE = "pi", "q", "twin_q", "state"


def sizes(arrays: Mapping[str, Array], stack: str) -> tuple[int, ...]:
    """The sizes of a stack's hidden layers."""
    found: list[int] = []
    while (kernel := arrays.get(f"{stack}.hidden.{len(found)}.kernel")) is not None:
        found.append(int(kernel.shape[1]))
    return tuple(found)


def inputs(arrays: Mapping[str, Array], stack: str) -> int:
    """How many numbers a stack takes.

    Raises:
        CheckpointError: Its first layer is missing.
    """
    first = f"{stack}.hidden.0.kernel" if sizes(arrays, stack) else f"{stack}.out.kernel"
    if first not in arrays:
        raise CheckpointError(f"The array {first} is missing.", where="network")
    return int(arrays[first].shape[0])


def outputs(arrays: Mapping[str, Array], stack: str) -> int:
    """How many numbers a stack gives.

    Raises:
        CheckpointError: Its last layer is missing.
    """
    if f"{stack}.out.kernel" not in arrays:
        raise CheckpointError(f"The array {stack}.out.kernel is missing.", where="network")
    return int(arrays[f"{stack}.out.kernel"].shape[1])


def add_hidden(
    build: Builder,
    arrays: Mapping[str, Array],
    stack: str,
    takes: str,
    activations: str | Sequence[str],
    **settings: bool,
) -> str:
    """Adds a stack's hidden layers, and returns the name of the last one's value.

    Args:
        build: What collects the steps.
        arrays: The canonical arrays; a layer with a `beta` is RLlib's own swish.
        stack: The name of the stack.
        takes: What goes in.
        activations: The activation of all layers, or of each.
        settings: More settings for each step.
    """
    count = len(sizes(arrays, stack))
    each = [activations] * count if isinstance(activations, str) else activations
    for i, activation in zip(range(count), each, strict=True):
        name = f"{stack}.hidden.{i}"
        if f"{name}.beta" in arrays:
            takes = build.add("sloped_dense", name, takes, **settings)
        else:
            takes = build.add("dense", name, takes, activation=activation, **settings)
    return takes


def add_critics(
    build: Builder,
    arrays: Mapping[str, Array],
    takes: str,
    activations: str | Sequence[str],
    *,
    of_actions: bool,
) -> dict[str, str]:
    """Adds the critic, and its twin if there is one, and returns their outputs.

    Args:
        build: What collects the steps.
        arrays: The canonical arrays.
        takes: The observation, or the features that go in.
        activations: As `add_hidden` takes them.
        of_actions: Whether a critic takes the actions, too, and gives one number for them;
            otherwise it gives one for each action.
    """
    if of_actions:
        takes = build.add("concat", "q_inputs", takes, "actions")
    made = {}
    for stack, output in ((CRITIC, "q_values"), (TWIN, "twin_q_values")):
        if f"{stack}.out.kernel" in arrays:
            hidden = add_hidden(build, arrays, stack, takes, activations)
            made[output] = build.add("dense", f"{stack}.out", hidden)
            if of_actions:
                made[output] = build.add("scalar", output, made[output])
    return made


def describe(arrays: Mapping[str, Array], stack: str) -> str:
    """The sizes of a stack, for tables: `3-32-24-2`."""
    return "-".join(
        map(str, (inputs(arrays, stack), *sizes(arrays, stack), outputs(arrays, stack)))
    )
