"""What a trunk is, and the trunk of dense layers; stacks of them, as SAC and DDPG have.

A trunk is a base model: it turns an observation into features, before any head. It is the same
under each head (an actor-critic's, DQN's, SAC's) and below an LSTM, so it is described once: its
names in every scheme, and the steps that compute it.

RLlib's fully connected network (`ray/rllib/models/**/fcnet.py`, 0.5 – 2.x) is a stack of dense
layers, all with one activation. Canonical arrays are `hidden.{i}`; on TensorFlow the last is
called `fc_out` where a head follows (Ray 0.7 – 2.x): canonical `out`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import repeat
from typing import Protocol

from rllib_compat.networks import refusals
from rllib_compat.networks.drawing import OUT, NewModel, draw_stack, since
from rllib_compat.networks.graph import CRITIC, POLICY, TWIN, Array, Builder
from rllib_compat.networks.mapping import Move, Table, keras, torch_dense
from rllib_compat.networks.named import Named
from rllib_compat.networks.network import OWN_PREFIX, OWN_TARGET_PREFIX, TARGET_PREFIX
from rllib_compat.networks.observations import original_space
from rllib_compat.networks.settings import ModelSettings
from rllib_compat.neutral.errors import ConfigError
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.report import Finding, Verdict
from rllib_compat.neutral.spaces import Space


class Add(Protocol):
    """Adds a trunk's steps to a graph."""

    def __call__(self, build: Builder, named: Named, prefix: str = "", takes: str = "obs") -> str:
        """Adds them behind what `takes` names; returns the name of the features.

        Names of arrays begin with the prefix: `value_hidden.0` is the first layer of a value trunk.
        """


@frozen
class Trunk:
    """One kind of base model.

    Attributes:
        kind: What it is, in a word or two.
        tables: Its arrays' names in each scheme (`slim`, `keras`, `torch`).
        inputs: The shape of the observation that the arrays take.
        add: Adds its steps to a graph.
        draw: Draws a new one for observations, and says how many numbers it gives.
    """

    kind: str
    tables: Mapping[str, Table]
    inputs: Callable[[Named], tuple[int, ...]]
    add: Add
    draw: Callable[[NewModel, Space], int]


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

    A layer with a `beta` has RLlib's own swish, whose slope was trained; one with a `sigma_kernel`
    is noisy. The activation is that of all layers, or of each; settings are those of every step.

    Returns:
        The name of the last layer's value; what goes in, where there are no layers.
    """
    plain = activation is None or isinstance(activation, str)
    each: Iterable[str | None] = repeat(activation) if plain else activation  # type: ignore[arg-type,assignment]
    for name, own in zip(names, each, strict=False):
        op = next((op for part, op in _KINDS if f"{name}.{part}" in arrays), "dense")
        options = {} if op == "sloped_dense" else {"activation": own}
        takes = build.add(op, name, takes, **options, **settings)
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


def ignores_free_log_std(settings: ModelSettings) -> bool:
    """Whether dense networks did; a checkpoint of Ray 0.7 shows only "0.7"."""
    early = settings.ray == "0.7" or since(settings, "0.7.5")
    return settings.ray is not None and early and not since(settings, "0.8.6")


def _draw(new: NewModel, seen: Space) -> int:
    """Draws a fully connected network for vectors, and what a preprocessor made one of."""
    takes = (original_space(seen) or seen).flat_size()
    arrays, settings, prefix, outputs = new.arrays, new.settings, new.prefix, new.outputs
    hiddens = settings.hidden_sizes
    free = settings.free_log_std and not ignores_free_log_std(settings)
    if free and outputs and outputs % 2:
        raise ConfigError(
            f"free_log_std needs an even number of outputs, and these actions need {outputs}.",
            where="model.free_log_std",
            fix="Remove the key: only Box actions have standard deviations.",
        )
    means = outputs // 2 if outputs and free else outputs
    activated = bool(settings.model.get("no_final_linear")) and means is not None
    own = [*hiddens[:-1], means] if activated and means else list(hiddens)
    last = draw_stack(arrays, f"{prefix}_hidden_layers", takes, own)
    gives = last
    if means is not None and not activated:
        gives = arrays.dense(f"{prefix}_logits._model.0", last, means, OUT)
    if means is not None and free:
        arrays.constant(f"{prefix}_append_free_log_std.log_std", means)
    if new.value:
        if not settings.shares_layers:
            last = draw_stack(arrays, f"{prefix}_value_branch_separate", takes, hiddens)
        arrays.dense(f"{prefix}_value_branch._model.0", last, 1, new.norm_of_value("1.3"))
    return gives


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
    draw=_draw,
)


def module_names(parts: Mapping[str, str], hiddens: Mapping[str, int]) -> Table:
    """The rows of all stacks, by what the module calls each, and of their targets."""
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

    `stacks` are what the names of arrays with a target begin with; none: all.

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


def layers_of_stack(named: Named, stack: str) -> list[str]:
    """The layers of a stack, first to last."""
    return [layer for layer in (*named.layers(f"{stack}.hidden"), f"{stack}.out") if layer in named]


def add_critics(
    build: Builder, named: Named, takes: str, activation: str | Sequence[str], *, of_actions: bool
) -> dict[str, str]:
    """Adds the critic, and its twin if there is one, and returns their outputs.

    Critics `of_actions` take these, too, and give one number for them; others give one for each.
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


def describe_stack(named: Named, stack: str) -> str:
    """The sizes of a stack, for tables: `3-32-24-2`."""
    layers = layers_of_stack(named, stack)
    return "-".join(map(str, (named.takes(layers[0]), *map(named.gives, layers))))
