"""Converts the arguments of old policies to batches for modules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rllib_compat.neutral.errors import ObservationError
from rllib_compat.runtime import connectors
from rllib_compat.runtime.recurrent_states import initial_state, nest_state

if TYPE_CHECKING:
    import torch

    from rllib_compat.ray_versions.types import AlgorithmConfig, RLModule


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
        if state is None or not len(state):
            state = [np.repeat(part[None], count, 0) for part in initial_state(self._module)]
        parts = [torch.as_tensor(np.asarray(part, np.float32), device=device) for part in state]
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
