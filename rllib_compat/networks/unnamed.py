"""Names for arrays that were stored without any.

Ray 0.5 – 0.7 stored a TensorFlow policy as one flat float32 vector, Ray 1.x a TF2 policy as a
list. Both are in the order in which TensorFlow counted the variables, so the names follow from
the network's shape. Where several orders would fit by size, the scalars that RLlib mixed in
between (PPO's KL and entropy coefficients) show which is right: their values are known.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from rllib_compat import registry
from rllib_compat.networks import refusals
from rllib_compat.networks.graph import Array
from rllib_compat.networks.named import MOVING_AVERAGE, where_of
from rllib_compat.networks.network import TARGET_PREFIX
from rllib_compat.networks.observations import preprocessed_image, require_image
from rllib_compat.networks.settings import ModelSettings, distribution_inputs
from rllib_compat.networks.trunks.vision import Filter, filters_for
from rllib_compat.neutral.checkpoint import PolicyState, size_of
from rllib_compat.neutral.errors import CorruptCheckpointError
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.spaces import Space


def name_vision(
    policy: PolicyState, settings: ModelSettings
) -> tuple[dict[str, Array], dict[str, float]]:
    """Names the arrays of a list or a flat vector.

    Returns:
        The canonical arrays, and the scalars found between them.

    Raises:
        MissingInformationError: A space has to be given.
        CheckpointError: No order fits.
    """
    outputs = policy.action_space and distribution_inputs(policy.action_space)
    if not outputs:
        raise refusals.needed(
            "The weights have no names; the action space is needed to identify them.",
            "action",
            where_of(policy),
        )
    if isinstance(policy.weights, list):
        return _name_list(policy.weights, policy, settings), {}
    vector = np.asarray(policy.weights)
    for free_log_std in {settings.free_log_std, False}:
        rows = _rows(policy, settings, outputs, free_log_std=free_log_std)
        if found := cut_vector(vector, *rows, scalars_of(settings)):
            return found
    raise refusals.no_fit(
        f"The vector of {vector.size} numbers",
        f"vision network with these convolutions and {outputs} outputs",
        where_of(policy),
    )


def _rows(
    policy: PolicyState, settings: ModelSettings, outputs: int, *, free_log_std: bool
) -> tuple[Rows, Rows]:
    """The rows of the policy and of its value function, in the order in which they were made."""
    image = require_image(policy, settings)
    filters = filters_for(settings.model, image)

    def stack(prefix: str, head: str, size: int) -> Rows:
        *before, last = filters
        if settings.model.get("no_final_linear") and not prefix:
            made = [*before, Filter(size, last.kernel, last.stride)]
        else:
            made = [*filters, Filter(size, (1, 1), (1, 1))]
        names = [*layers(f"{prefix}conv", len(made) - 1), head]
        return conv_rows(names, image[-1], made)

    means = outputs // 2 if free_log_std else outputs
    rows = stack("", "conv_out", means)
    if free_log_std:
        rows.append(("log_std.value", (means,)))
    if not settings.shares_layers:
        return rows, stack("value_", "value", 1)
    return rows, [("value.kernel", (filters[-1].channels, 1)), ("value.bias", (1,))]


def _name_list(
    arrays: Sequence[Array], policy: PolicyState, settings: ModelSettings
) -> dict[str, Array]:
    model = settings.model
    count = len(filters_for(model, require_image(policy, settings)))
    post = len(model.get("post_fcnet_hiddens") or ())
    activated = bool(model.get("no_final_linear"))
    behind = [f"post.{i + (not activated)}" for i in range(post)]
    order = vision_order(
        [*layers("conv", count - activated), "conv_out", *behind],
        count,
        shares=settings.shares_layers,
    )
    if 2 * len(order) != len(arrays):
        raise refusals.no_fit(
            f"The {len(arrays)} unnamed arrays",
            f"vision network of the config, which has {2 * len(order)}",
            where_of(policy),
        )
    names = [f"{layer}.{part}" for layer in order for part in ("kernel", "bias")]
    return dict(zip(names, arrays, strict=True))


def vision_order(policy: list[str], count: int, *, shares: bool) -> list[str]:
    """The layers in the order of keras, the policy's before the value function's.

    The value function ends in a layer without arrays that takes its 1×1 image apart, which puts
    convolutions of its own one further away.
    """
    if shares:
        # It sits on a layer of the policy, and so at the same distance as the policy's last.
        return [*policy, "value"]
    return keras_order((policy, 0), ([*layers("value_conv", count), "value"], 1))


#: Names and shapes in the order in which the variables were made.
Rows: TypeAlias = list[tuple[str, tuple[int, ...]]]

#: PPO multiplies its KL coefficient by one of these after an iteration (`update_kl`). It counts in
#: float64; the variable among the weights is the nearest float32.
_KL_STEPS = (1.5, 0.5)
_MOST_KL_UPDATES = 5000


def dense_rows(names: Sequence[str], sizes: Sequence[int]) -> Rows:
    """The rows of a stack of dense layers; `sizes` begin with how many numbers go in."""
    rows: Rows = []
    for name, (before, after) in zip(names, pairwise(sizes), strict=True):
        rows += [(f"{name}.kernel", (before, after)), (f"{name}.bias", (after,))]
    return rows


def conv_rows(names: Sequence[str], channels: int, filters: Sequence[Filter]) -> Rows:
    """The rows of convolutions one behind the other, of images with so many channels."""
    rows: Rows = []
    for name, filter_ in zip(names, filters, strict=True):
        rows += [(f"{name}.kernel", (*filter_.kernel, channels, filter_.channels))]
        rows += [(f"{name}.bias", (filter_.channels,))]
        channels = filter_.channels
    return rows


def layers(prefix: str, count: int) -> list[str]:
    """The names of a stack: `hidden.0`, `hidden.1` and so on."""
    return [f"{prefix}.{i}" for i in range(count)]


def total(rows: Iterable[tuple[str, tuple[int, ...]]]) -> int:
    """How many numbers rows are of."""
    return sum(math.prod(shape) for _, shape in rows)


def keras_order(*chains: tuple[Sequence[str], int]) -> list[str]:
    """Layers in the order of a keras model's `variables`.

    keras sorts layers by their distance from the outputs, and layers at the same distance by when
    they were made.

    Args:
        chains: The layers that lead to each output, first to last, and how many layers without
            arrays lie behind the last.
    """
    depth = {
        name: len(chain) - 1 - i + behind
        for chain, behind in chains
        for i, name in enumerate(chain)
    }
    return sorted(depth, key=lambda name: -depth[name])


@frozen
class Shape:
    """The shape of a fully connected actor-critic.

    Attributes:
        inputs: The size of the preprocessed observation.
        hiddens: The sizes of the hidden layers.
        outputs: What the action distribution takes, log standard deviations included.
        shares_layers: Whether the value function sits on the policy's layers.
        free_log_std: Whether half of the outputs are free parameters.
    """

    inputs: int
    hiddens: tuple[int, ...]
    outputs: int
    shares_layers: bool
    free_log_std: bool = False

    def policy(self) -> Rows:
        """The rows of the policy's network."""
        means = self.outputs // 2 if self.free_log_std else self.outputs
        names = [*layers("hidden", len(self.hiddens)), "logits"]
        log_std: Rows = [("log_std.value", (means,))] if self.free_log_std else []
        return [*dense_rows(names, (self.inputs, *self.hiddens, means)), *log_std]

    def value(self) -> Rows:
        """The rows that only the value function has."""
        names = [*layers("value_hidden", len(self.hiddens)), "value"]
        own = dense_rows(names, (self.inputs, *self.hiddens, 1))
        return own[-2:] if self.shares_layers else own

    def keras_order(self) -> list[str]:
        """The layers in the order of keras; what appends `log_std` lies behind the policy's."""
        policy = [*layers("hidden", len(self.hiddens)), "logits"]
        value = [*layers("value_hidden", len(self.hiddens)), "value"]
        return keras_order(
            (policy, int(self.free_log_std)), (value[-1:] if self.shares_layers else value, 0)
        )


def name_list(policy: PolicyState, arrays: Sequence[Array]) -> dict[str, Array]:
    """Names the arrays of a fully connected TF2 policy (Ray 1.x, `framework="tf2"`).

    Raises:
        CorruptCheckpointError: The arrays are in no order that such a policy has.
    """
    free_log_std = bool(arrays) and arrays[0].ndim == 1
    count = (len(arrays) - free_log_std) // 2
    options = [(count - 2, True), ((count - 2) // 2, False)] if count % 2 == 0 else []
    options = options or [(count - 2, True)]
    for hiddens, shares_layers in options:
        shape = Shape(0, (0,) * hiddens, 0, shares_layers, free_log_std)
        names = ["log_std.value"] * free_log_std
        names += [f"{layer}.{part}" for layer in shape.keras_order() for part in ("kernel", "bias")]
        named = dict(zip(names, arrays, strict=False))
        if len(names) == len(arrays) and _chains(named, hiddens, shares_layers=shares_layers):
            return named
    shapes = ", ".join(str(a.shape) for a in arrays)
    raise CorruptCheckpointError(
        f"The {len(arrays)} unnamed arrays are not a fully connected network: {shapes}.",
        where=where_of(policy),
        fix=refusals.CHECK,
    )


def _chains(named: Mapping[str, Array], hiddens: int, *, shares_layers: bool) -> bool:
    """Whether every layer takes what the one before it gives."""
    policy = [f"hidden.{i}" for i in range(hiddens)]
    value = policy if shares_layers else [f"value_hidden.{i}" for i in range(hiddens)]
    stacks = [[*policy, "logits"], [*value, "value"]]
    for stack in stacks:
        kernels = [named[f"{name}.kernel"] for name in stack]
        biases = [named[f"{name}.bias"] for name in stack]
        if any(k.ndim != 2 or k.shape[1:] != b.shape for k, b in zip(kernels, biases, strict=True)):
            return False
        if any(a.shape[1] != b.shape[0] for a, b in pairwise(kernels)):
            return False
    return bool(named["value.kernel"].shape[1] == 1)


def scalars_of(settings: ModelSettings) -> dict[str, float | None]:
    """The scalars that an algorithm's loss depended on, with the values they began with.

    None: the value is not known (a schedule, a running mean). Sources: `ppo_policy.py`,
    `appo_policy.py`, `vtrace_policy.py`, `marwil_policy.py` of Ray 0.5 – 0.7.
    """
    if settings.algorithm in registry.family("PPO"):
        return {"kl_coeff": settings.kl_coeff, "entropy_coeff": settings.entropy_coeff}
    if settings.algorithm == "APPO":
        return {"kl_coeff": settings.kl_coeff} if settings.config.get("use_kl_loss") else {}
    if settings.algorithm == "IMPALA":
        has_coefficient = "entropy_coeff" in settings.config
        return {"entropy_coeff": settings.entropy_coeff if has_coefficient else None}
    return {MOVING_AVERAGE: None} if settings.algorithm == "MARWIL" else {}


def name_vector(
    policy: PolicyState, settings: ModelSettings, *, target: bool = False
) -> tuple[dict[str, Array], dict[str, float]]:
    """Cuts the flat vector of a fully connected policy into named arrays.

    With `target`, a copy of the policy's network may follow (APPO with V-trace).

    Returns:
        The canonical arrays, and the scalars found between them.

    Raises:
        MissingInformationError: A size has to be given.
        CheckpointError: No order fits, or more than one.
    """
    vector, scalars = np.asarray(policy.weights), scalars_of(settings)
    inputs = observation_size(policy, settings)
    outputs = distribution_inputs(policy.action_space) if policy.action_space else None
    hiddens = settings.hidden_sizes
    fits: list[tuple[dict[str, Array], dict[str, float]]] = []
    for shape in _shapes(vector.size, inputs, outputs, hiddens, settings):
        found = cut_vector(vector, shape.policy(), shape.value(), scalars, target=target)
        fits += [found] if found else []
    if len(fits) == 1:
        return fits[0]
    raise refusals.no_fit(
        f"The vector of {vector.size} numbers",
        f"fully connected network with {inputs} inputs, hidden layers {list(hiddens)} and "
        f"{outputs if outputs is not None else 'unknown'} outputs",
        where_of(policy),
        len(fits),
    )


def require_spaces(policy: PolicyState) -> tuple[Space, Space]:
    """The spaces of a policy whose weights are one vector."""
    seen, actions = policy.observation_space, policy.action_space
    if seen is None or actions is None:
        raise refusals.needed(
            f"The weights are one vector of {size_of(policy.weights)} numbers without names; both "
            "spaces are needed to cut it.",
            "both",
            where_of(policy),
        )
    return seen, actions


def observation_size(policy: PolicyState, settings: ModelSettings) -> int:
    """How many numbers the preprocessor makes of an observation.

    Raises:
        MissingInformationError: Neither a space nor a filter has it.
    """
    if (image := preprocessed_image(policy.observation_space, settings)) is not None:
        return math.prod(image)
    if policy.observation_space is not None:
        return policy.observation_space.flat_size()
    if policy.observation_filter is not None and policy.observation_filter.stats:
        return sum(stat.mean.size for stat in policy.observation_filter.stats)
    raise refusals.needed(
        f"The weights are one vector of {size_of(policy.weights)} numbers without names; the size "
        "of the observations is needed to cut it.",
        "observation",
        where_of(policy),
    )


def _shapes(
    size: int, inputs: int, outputs: int | None, hiddens: tuple[int, ...], settings: ModelSettings
) -> Iterator[Shape]:
    """The shapes that the config allows. Ray 0.7.5 – 0.8.5 ignored `free_log_std` on TensorFlow."""
    shares_layers = settings.shares_layers
    for free in {settings.free_log_std, False}:
        if outputs is not None:
            yield Shape(inputs, hiddens, outputs, shares_layers, free)
            continue
        # Every output costs the last layer's width and a bias (and with free_log_std one more);
        # of a number of outputs, `_orders` takes those that fit the size exactly.
        for guess in range(1, size):
            shape = Shape(inputs, hiddens, guess, shares_layers, free)
            if total([*shape.policy(), *shape.value()]) > size:
                break
            yield shape


def cut_vector(
    vector: Array,
    policy: Rows,
    value: Rows,
    scalars: Mapping[str, float | None],
    *,
    target: bool = False,
) -> tuple[dict[str, Array], dict[str, float]] | None:
    """Cuts a flat vector into the arrays of a policy, of its value function, and scalars.

    `value` are the rows that only the value function has. With `target`, a copy of the policy's
    network may follow (APPO with V-trace).

    Returns:
        The canonical arrays, and the scalars found between them; None where no order fits.
    """
    for rows in _orders(policy, value, vector.size, scalars, target=target):
        arrays = cut(vector, rows)
        names = [name for name, size in rows if size == ()]
        found = {name: float(arrays.pop(name)) for name in names}
        if all(_plausible(k, v, scalars[k]) for k, v in found.items()):
            return arrays, found
    return None


def _orders(
    policy: Rows, value: Rows, size: int, scalars: Mapping[str, float | None], *, target: bool
) -> Iterator[Rows]:
    """The orders in which TensorFlow counted the variables, as far as `size` allows.

    Ray 0.5 and 0.6 made the KL coefficient between the policy's network and the value function;
    Ray 0.7 made it, and then an entropy coefficient, at the end. PPO always has the first.
    """
    copies: Rows = [(TARGET_PREFIX + name, size) for name, size in policy]
    last: Rows = [(name, ()) for name in scalars]
    orders = [[*policy, *value, *last]]
    if "kl_coeff" in scalars and not target:
        kl: Rows = [("kl_coeff", ())]
        orders = [[*policy, *kl, *value], *orders, [*policy, *last, *value], [*policy, *value, *kl]]
    elif last:
        orders.append([*policy, *value])
    if target:
        orders.append([*policy, *value, *copies, *last])
    for rows in orders:
        if total(rows) == size:
            yield rows


def cut(vector: Array, rows: Rows) -> dict[str, Array]:
    """A vector as arrays of the given names and shapes, one after the other."""
    arrays, start = {}, 0
    for name, shape in rows:
        end = start + math.prod(shape)
        arrays[name] = vector[start:end].reshape(shape)
        start = end
    return arrays


def _plausible(name: str, value: float, initial: float | None) -> bool:
    """Whether a scalar can have this value after training that began at `initial`."""
    if initial is None or not (math.isfinite(value) and math.isfinite(initial)):
        return math.isfinite(value)
    if name != "kl_coeff" or initial <= 0:
        return math.isclose(value, initial, rel_tol=1e-6, abs_tol=1e-12)
    if value <= 0:
        return value == 0  # halved until float32 had no smaller number
    # As many updates up as any training made; the updates down follow from them.
    up, down = (math.log(step) for step in _KL_STEPS)
    raised = np.arange(_MOST_KL_UPDATES) * up - math.log(value / initial)
    lowered = np.maximum(np.round(raised / -down), 0)
    exact = 2 * np.spacing(np.float32(value)) / value
    fits = np.abs(raised + lowered * down) <= exact
    return bool(fits[np.arange(_MOST_KL_UPDATES) + lowered < _MOST_KL_UPDATES].any())
