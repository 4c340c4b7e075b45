"""Converts the arguments of old policies to batches for modules, and modules' states to old ones.

Modules have nested dicts of arrays. Ray's LSTMs have an axis for layers before the cells, and a
dict's leaves are in the order of their names, `c` first. RLlib's models had `[h, c]`, one vector
each (`models/torch/recurrent_net.py` of Ray 0.8 – 2.x).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rllib_compat.neutral.errors import ObservationError
from rllib_compat.neutral.recurrent_state import checked_state, is_given
from rllib_compat.runtime import connectors

if TYPE_CHECKING:
    import torch

    from rllib_compat.ray_versions.types import AlgorithmConfig, RLModule


#: The names of an LSTM's states in Ray's modules, in the legacy order.
_LSTM_STATES = ("h", "c")


def initial_state(module: RLModule) -> list[Any]:
    """Returns a module's initial state as arrays without a batch axis, which may be empty."""
    if not module.is_stateful():
        return []
    return [np.asarray(part) for part in flatten_state(module.get_initial_state(), batched=False)]


def check_state(module: RLModule, state: object, count: int | None = None) -> list[Any]:
    """Converts a state that a caller passed, of so many rows if it is a batch, to arrays.

    Raises:
        CompatError: It is no list of arrays with the shapes of the module's state.
    """
    lead = () if count is None else (count,)
    shapes = [(*lead, *part.shape) for part in initial_state(module)]
    return checked_state(state, shapes, where="state")


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


class PolicyInputs:
    """Creates a module's batches from the arguments of a policy.

    Attributes:
        observation_space: The module's space without previous steps.
    """

    def __init__(self, module: RLModule, config: AlgorithmConfig) -> None:
        self._module = module
        self._actions, self._rewards, self._one_hot = connectors.previous_steps(config)
        self.observation_space = module.observation_space
        if self._actions or self._rewards:
            size = self._previous_steps(None, None, 1).shape[-1]
            self.observation_space = connectors.space_without_previous_steps(
                module.observation_space, size
            )

    def batch(
        self,
        obs: Any,
        state: Sequence[Any] | None = None,
        actions: object = None,
        rewards: object = None,
    ) -> dict[str, Any]:
        """Creates a batch for the module, with a time axis of one step if it is recurrent.

        Without a state it has the initial one, without previous steps zeros.

        Raises:
            ObservationError: Observations have another shape than the module's, or no numbers.
        """
        import torch
        import tree

        parameters = self._module.parameters()
        device = next((p.device for p in parameters), torch.device("cpu"))
        space = self._module.observation_space
        if getattr(space, "shape", None) is not None:
            obs = self._with_previous_steps(self._numbers(obs), actions, rewards)
            if tuple(obs.shape[1:]) != space.shape:
                raise self._misfit(f"have the shape {tuple(obs.shape)}")
            if not isinstance(obs, torch.Tensor) and space.dtype.kind == "f":
                obs = obs.astype(space.dtype)
        found = tree.map_structure(lambda part: tensor_of(part, device), obs)
        if not self._module.is_stateful():
            return {"obs": found}
        count = len(tree.flatten(found)[0])
        if is_given(state):
            given = check_state(self._module, state, count)
        else:
            given = [np.repeat(part[None], count, 0) for part in initial_state(self._module)]
        parts = [torch.as_tensor(np.asarray(part, np.float32), device=device) for part in given]
        found = tree.map_structure(lambda part: part[:, None], found)
        return {"obs": found, "state_in": nest_state(self._module, parts)}

    def _numbers(self, obs: object) -> Any:
        """Stacks observations, and checks that they are one array of numbers."""
        try:
            made = stacked(obs)
        except (TypeError, ValueError) as error:
            raise self._misfit(f"are no array ({error})") from error
        if not np.ndim(made) or (isinstance(made, np.ndarray) and made.dtype.kind not in "biuf"):
            raise self._misfit("are no array of numbers")
        return made

    def _misfit(self, what: str) -> ObservationError:
        space = self._module.observation_space
        return ObservationError(
            f"A policy takes what preprocessors make of observations, here {space}; these {what}.",
            where="obs_batch",
            fix="call trainer.compute_single_action(obs), which preprocesses, or give a batch of "
            "preprocessed observations",
        )

    def _with_previous_steps(self, obs: Any, actions: Any, rewards: Any) -> Any:
        """Appends previous steps to observations, unless they have them."""
        if not (self._actions or self._rewards):
            return obs
        if np.shape(obs)[-1] == self._module.observation_space.shape[-1]:
            return obs
        flat = np.asarray(obs).reshape(len(obs), -1)
        return np.concatenate([flat, self._previous_steps(actions, rewards, len(obs))], axis=-1)

    def _previous_steps(self, actions: object, rewards: object, count: int) -> Any:
        parts = []
        if self._actions:
            taken = connectors.flat_actions(
                self._module.action_space, actions, count * self._actions, self._one_hot
            )
            parts.append(taken.reshape(count, -1))
        if self._rewards:
            given = np.zeros((count, self._rewards)) if rewards is None else np.asarray(rewards)
            parts.append(given.reshape(count, -1))
        return np.concatenate(parts, axis=-1)


def stacked(values: Any) -> Any:
    """Stacks a list of arrays or numbers; arrays and structures stay."""
    if hasattr(values, "shape") or isinstance(values, (dict, tuple)):
        return values
    if values is None:
        raise TypeError("The observations or actions are None.")
    array = np.asarray([in_numpy(value) for value in values])
    return array.astype(np.float32) if array.dtype == np.float64 else array


def tensor_of(value: object, device: Any = None) -> torch.Tensor:
    """Converts an array, also a view such as `frames[::-1]`: torch has no negative strides."""
    import torch

    value = np.asarray(value, order="C") if isinstance(value, np.ndarray) else value
    return torch.as_tensor(value, device=device)


def in_numpy(value: object) -> Any:
    """Converts a tensor to an array; other values stay."""
    return value.detach().cpu().numpy() if hasattr(value, "detach") else value
