"""Names for arrays that were stored without any.

Ray 0.5 – 0.7 stored a TensorFlow policy as one flat float32 vector, Ray 1.x a TF2 policy as a
list. Both are in the order in which TensorFlow counted the variables, so the names follow from
the network's shape. Where several orders would fit by size, the scalars that RLlib mixed in
between (PPO's KL and entropy coefficients) tell which is right: their values are known.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from rllib_compat import registry
from rllib_compat.networks.heads.fcnet import Shape
from rllib_compat.networks.network import TARGET_PREFIX
from rllib_compat.networks.settings import ModelSettings
from rllib_compat.neutral.errors import (
    CheckpointError,
    CorruptCheckpointError,
    MissingInformationError,
)

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

Rows: TypeAlias = list[tuple[str, tuple[int, ...]]]

#: MARWIL's running mean of squared advantages, a scalar among its weights (Ray 0.6 – 0.8.0).
MOVING_AVERAGE = "moving_average_of_advantage_norm"

#: PPO multiplies its KL coefficient by one of these after an iteration (`update_kl`).
_KL_STEPS = (1.5, 0.5)
_MOST_KL_UPDATES = 64


def keras_order(hiddens: int, *, shares_layers: bool, free_log_std: bool) -> list[str]:
    """The canonical layer names in the order of a keras model's `variables`.

    keras sorts layers by their distance from the outputs, and layers at the same distance by when
    they were made. The layer that appends `log_std` puts the policy's layers one further away.
    """
    away = 1 if free_log_std else 0
    policy = [*(f"hidden.{i}" for i in range(hiddens)), "logits"]
    value = (
        ["value"] if shares_layers else [*(f"value_hidden.{i}" for i in range(hiddens)), "value"]
    )
    depth = {name: len(policy) - 1 - i + away for i, name in enumerate(policy)}
    depth |= {name: len(value) - 1 - i for i, name in enumerate(value)}
    return sorted([*policy, *value], key=lambda name: -depth[name])


def name_list(arrays: Sequence[Array], *, where: str) -> dict[str, Array]:
    """Names the arrays of a fully connected TF2 policy (Ray 1.x, `framework="tf2"`).

    Raises:
        CorruptCheckpointError: The arrays are in no order that such a policy has.
    """
    free_log_std = bool(arrays) and arrays[0].ndim == 1
    layers = (len(arrays) - free_log_std) // 2
    options = [(layers - 2, True), ((layers - 2) // 2, False)] if layers % 2 == 0 else []
    options = options or [(layers - 2, True)]
    for hiddens, shares_layers in options:
        order = keras_order(hiddens, shares_layers=shares_layers, free_log_std=free_log_std)
        names = ["log_std.value"] * free_log_std
        names += [f"{layer}.{part}" for layer in order for part in ("kernel", "bias")]
        named = dict(zip(names, arrays, strict=False))
        if len(names) == len(arrays) and _chains(named, hiddens, shares_layers=shares_layers):
            return named
    shapes = ", ".join(str(a.shape) for a in arrays)
    raise CorruptCheckpointError(
        f"The {len(arrays)} unnamed arrays are no fully connected network: {shapes}.", where=where
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
        told = "entropy_coeff" in settings.config
        return {"entropy_coeff": settings.entropy_coeff if told else None}
    return {MOVING_AVERAGE: None} if settings.algorithm == "MARWIL" else {}


def name_vector(
    vector: Array,
    *,
    inputs: int | None,
    outputs: int | None,
    hiddens: tuple[int, ...],
    shares_layers: bool,
    free_log_std: bool,
    scalars: Mapping[str, float | None],
    where: str,
    target: bool = False,
) -> tuple[dict[str, Array], dict[str, float]]:
    """Cuts a flat vector of a fully connected policy into named arrays.

    Args:
        vector: The vector, float32 `[n]`.
        inputs: The size of the preprocessed observation, if known.
        outputs: What the action distribution takes, if known.
        hiddens: The hidden sizes that the config tells.
        shares_layers: Whether the value function shares them, by the config.
        free_log_std: Whether the config asks for it; some Rays ignored that.
        scalars: Those that the algorithm had (see `scalars_of`).
        where: The place, for errors.
        target: Whether a copy of the policy's network may follow (APPO with V-trace).

    Returns:
        The canonical arrays, and the scalars found between them.

    Raises:
        MissingInformationError: A size has to be given.
        CheckpointError: No order fits, or more than one.
    """
    if inputs is None:
        raise MissingInformationError(
            f"The weights are one vector of {vector.size} numbers without names; the size of "
            "the observations is needed to cut it.",
            where=where,
            fix="Give --observation-space 'Box(4,)' or --env CartPole-v1 (Python: "
            "observation_space=, env=).",
        )
    fits: list[tuple[dict[str, Array], dict[str, float]]] = []
    for shape in _shapes(vector.size, inputs, outputs, hiddens, shares_layers, free_log_std):
        found = cut_vector(vector, shape.policy(), shape.value(), scalars, target=target)
        fits += [found] if found else []
    if len(fits) == 1:
        return fits[0]
    what = "no" if not fits else "more than one"
    raise CheckpointError(
        f"The vector of {vector.size} numbers fits {what} fully connected network with "
        f"{inputs} inputs, hidden layers {list(hiddens)} and "
        f"{outputs if outputs is not None else 'unknown'} outputs.",
        where=where,
        fix="Check that the config (params.json) and the spaces belong to this checkpoint.",
    )


def _shapes(
    size: int,
    inputs: int,
    outputs: int | None,
    hiddens: tuple[int, ...],
    shares_layers: bool,
    free_log_std: bool,
) -> Iterator[Shape]:
    """The shapes that the config allows. Ray 0.7.5 – 0.8.5 ignored `free_log_std` on TensorFlow."""
    for free in {free_log_std, False}:
        if outputs is not None:
            yield Shape(inputs, hiddens, outputs, shares_layers, free)
            continue
        # Every output costs the last layer's width and a bias (and with free_log_std one more);
        # of a number of outputs, `_orders` takes those that fit the size exactly.
        for guess in range(1, size):
            shape = Shape(inputs, hiddens, guess, shares_layers, free)
            rows = [*shape.policy(), *shape.value()]
            total = sum(math.prod(s) for _, s in rows)
            if total > size:
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

    Args:
        vector: The vector, float32 `[n]`.
        policy: The names and shapes of the policy's network in the order of their making.
        value: Those that only the value function has.
        scalars: Those that the algorithm had (see `scalars_of`).
        target: Whether a copy of the policy's network may follow (APPO with V-trace).

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
    policy: Rows,
    value: Rows,
    size: int,
    scalars: Mapping[str, float | None],
    *,
    target: bool,
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
        if sum(math.prod(s) for _, s in rows) == size:
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
    if initial is None or not math.isfinite(value):
        return math.isfinite(value)
    if name != "kl_coeff" or initial == 0:
        return math.isclose(value, initial, rel_tol=1e-6, abs_tol=1e-12)
    if value <= 0:
        return False
    up, down = (math.log(step) for step in _KL_STEPS)
    ratio = math.log(value / initial)
    return any(
        math.isclose(ratio, n * up + m * down, abs_tol=1e-5)
        for n in range(_MOST_KL_UPDATES)
        for m in range(_MOST_KL_UPDATES - n)
    )
