"""The recurrent state that callers pass to policies: a list of arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from rllib_compat.neutral.errors import CompatError


def is_given(state: Any) -> bool:
    """Whether a caller passed a state: neither None nor an empty list."""
    return state is not None and not (hasattr(state, "__len__") and len(state) == 0)


def checked_state(
    state: Any,
    shapes: Sequence[tuple[int, ...]],
    *,
    where: str,
    error: type[CompatError] = CompatError,
) -> list[np.ndarray[Any, Any]]:
    """Converts a state that a caller passed to arrays of the policy's shapes.

    Args:
        state: The state.
        shapes: The shapes; arrays with as many elements get them.
        where: Where it was passed, for the error.
        error: The class of the error.

    Raises:
        CompatError: It is not a list of such arrays, or the policy has no state.
    """
    if not shapes:
        raise error(
            "The policy is not recurrent, and takes no state.", where=where, fix="Omit `state`."
        )
    parts = _arrays(state)
    wanted = list(map(tuple, shapes))
    if parts is not None and [p.size for p in parts] == [math.prod(shape) for shape in wanted]:
        return [part.reshape(shape) for part, shape in zip(parts, wanted, strict=True)]
    found = repr(state)[:100] if parts is None else f"arrays of {[p.shape for p in parts]}"
    raise error(
        f"The recurrent state must be a list of arrays of the shapes {wanted}; this is {found}.",
        where=where,
        fix="Pass policy.get_initial_state() at first, then the state that the last call returned.",
    )


def _arrays(state: Any) -> list[np.ndarray[Any, Any]] | None:
    """The parts of a state as arrays of numbers; None if it is something else."""
    try:
        parts = [np.asarray(p.detach().cpu() if hasattr(p, "detach") else p) for p in state]
    except (TypeError, ValueError):
        return None
    return parts if all(part.dtype.kind in "biuf" for part in parts) else None
