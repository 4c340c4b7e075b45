"""How far float32 lets a network's own outputs stray: the yardstick of every comparison.

Two right implementations of one network differ by rounding, and how much depends on the network
and its inputs: little for two small layers, much for large values, long sums and sequences. So it
is measured. The old network is computed in float64, and several times in float32: as it is, and
with its inputs and the value of every step moved by one unit in the last place, which is where
float32 leaves them. (Inputs alone would not do: behind layers that are saturated nothing moves.)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from rllib_compat.networks import Network, Outputs
from rllib_compat.networks.compiled import Compiled

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

#: The distance of 1.0 from the next float32.
ULP = float(np.finfo(np.float32).eps)

#: How often float32 is tried. Rounding is luck: one try may happen to be exact.
_TRIES = 4


def of_network(network: Network, inputs: Mapping[str, Array], exact: Outputs) -> dict[str, Array]:
    """Measures the error of a network in float32.

    Args:
        network: The old network.
        inputs: What it is computed on.
        exact: Its outputs for them in float64.

    Returns:
        What `measure` returns.
    """
    graph = network.graph
    choices = {name for step in graph.steps if step.op == "one_hot" for name in step.takes}
    plain = Compiled(graph, network.arrays, where=network.kind, dtype=np.float32)
    rng = np.random.default_rng(1)
    unsteady = Compiled(
        graph, network.arrays, where=network.kind, dtype=np.float32, after=partial(_moved, rng=rng)
    )
    return measure(plain, inputs, exact, choices, unsteady)


def measure(
    float32: Callable[[Mapping[str, Array]], Outputs],
    inputs: Mapping[str, Array],
    exact: Outputs,
    fixed: Collection[str] = (),
    unsteady: Callable[[Mapping[str, Array]], Outputs] | None = None,
) -> dict[str, Array]:
    """Measures how far a function strays in float32.

    Args:
        float32: The function.
        inputs: What it is computed on.
        exact: What it should give for them.
        fixed: Names of inputs that are numbers of choices, and are not moved.
        unsteady: The function with rounding of its own at every step, for all tries but the first;
            None: the function itself.

    Returns:
        For each output an error for each of its numbers. It is the largest of the number's row of
        the batch, at least what is usual in this batch for a row of its size, and at least one
        unit in the last place; infinite where float32 overflows.
    """
    rng = np.random.default_rng(0)
    worst = {name: np.zeros(np.shape(out)) for name, out in exact.items()}
    with np.errstate(over="ignore", invalid="ignore"):
        for i in range(_TRIES):
            moved = {
                name: value if i == 0 or name in fixed else _moved(value, rng)
                for name, value in inputs.items()
            }
            tried = (unsteady or float32)(moved) if i else float32(moved)
            for name, out in exact.items():
                off = np.abs(np.asarray(tried[name], np.float64) - out)
                worst[name] = np.maximum(worst[name], off)  # keeps NaN
        return {name: _of_rows(off, np.asarray(exact[name])) for name, off in worst.items()}


def _moved(value: Array, rng: np.random.Generator) -> Array:
    """Numbers moved by one unit in the last place, each up or down."""
    rounded = np.asarray(value, np.float32)
    towards = rng.choice(np.array([-np.inf, np.inf], np.float32), rounded.shape)
    return np.asarray(np.nextafter(rounded, towards))


def _of_rows(off: Array, exact: Array) -> Array:
    finite = np.isfinite(off)
    rows = _largest(np.where(finite, off, 0.0))
    sizes = np.maximum(_largest(np.where(np.isfinite(exact), np.abs(exact), 0.0)), 1.0)
    # A row whose tries were all lucky has at least the error that is usual for its size, and what
    # nine of ten rows have: sums that cancel give small numbers with the errors of large ones.
    usual = np.maximum(np.quantile(rows, 0.1), np.median(rows / sizes) * sizes)
    unit = ULP * np.maximum(np.abs(exact), 1.0)
    errors = np.maximum(np.maximum(rows, usual), unit)
    return np.asarray(np.where(finite, errors, np.inf))


def _largest(numbers: Array) -> Array:
    """The largest number of each row, for each of its numbers."""
    axes = tuple(range(1, numbers.ndim))
    return np.broadcast_to(numbers.max(axes, keepdims=True, initial=0.0), numbers.shape)
