"""Converts recurrent states to those of old code: flat lists of arrays, `h` before `c`.

Modules have nested dicts of arrays. Ray's LSTMs have an axis for layers before the cells, and a
dict's leaves are in the order of their names, `c` first. RLlib's models had `[h, c]`, one vector
each (`models/torch/recurrent_net.py` of Ray 0.8 – 2.x).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from rllib_compat.ray_versions.types import RLModule

#: The names of an LSTM's states in Ray's modules, in the legacy order.
_LSTM_STATES = ("h", "c")


def initial_state(module: RLModule) -> list[Any]:
    """Returns a module's initial state as arrays without a batch axis, which may be empty."""
    if not module.is_stateful():
        return []
    return [np.asarray(part) for part in flatten_state(module.get_initial_state(), batched=False)]


def state_after_step(state: object, *, batched: bool = True) -> list[Any]:
    """Returns the flat state that old policies returned; of attention, only the newest output.

    Old code keeps the memory itself, and appends that output to it (`AttentionWrapper` of Ray 1.2 –
    2.x).
    """
    if isinstance(state, dict) and any(str(name).startswith("memory_") for name in state):
        state = {name: memory[..., -1, :] for name, memory in state.items()}
    return flatten_state(state, batched=batched)


def flatten_state(state: Any, *, batched: bool = True) -> list[Any]:
    """Flattens a module's state, nested dicts of arrays, to a list in the legacy order."""
    import tree

    if not _is_of_an_lstm(state):
        return list(tree.flatten(state))
    layers = int(batched)
    parts = [state[name] for name in _LSTM_STATES]
    return [p.squeeze(layers) if p.ndim > layers and p.shape[layers] == 1 else p for p in parts]


def nest_state(module: RLModule, state: Iterable[Any], *, batched: bool = True) -> Any:
    """Converts a state of `flatten_state` to the module's form."""
    import tree

    template = module.get_initial_state()
    parts = list(state)
    if not _is_of_an_lstm(template):
        return tree.unflatten_as(template, parts)
    found = dict(zip(_LSTM_STATES, parts, strict=True))
    lead = {name: part.shape[: int(batched)] for name, part in found.items()}
    return {name: found[name].reshape(*lead[name], *template[name].shape) for name in template}


def _is_of_an_lstm(state: object) -> bool:
    return isinstance(state, dict) and set(state) == set(_LSTM_STATES)
