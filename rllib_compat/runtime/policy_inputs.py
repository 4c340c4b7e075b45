"""What old policies were given, as today's modules take it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rllib_compat.runtime import connectors
from rllib_compat.runtime.recurrent_states import initial_state, nest_state

if TYPE_CHECKING:
    from rllib_compat.ray_versions.types import AlgorithmConfig, RLModule


class PolicyInputs:
    """Makes a module's batches of what policies were given.

    Args:
        module: The module.
        config: The algorithm's config, which tells what modules see of the steps before.

    Attributes:
        observation_space: What the policy takes: the module's space without the steps before.
    """

    def __init__(self, module: RLModule, config: AlgorithmConfig) -> None:
        self._module = module
        self._actions, self._rewards, self._one_hot = connectors.previous_steps(config)
        self.observation_space = module.observation_space
        if self._actions or self._rewards:
            beside = self._steps_before(None, None, 1).shape[-1]
            self.observation_space = connectors.without_steps_before(
                module.observation_space, beside
            )

    def batch(
        self, obs: Any, state: Sequence[Any] | None = None, actions: Any = None, rewards: Any = None
    ) -> dict[str, Any]:
        """A batch in the module's form, with a time axis of one step where it has a state.

        Args:
            obs: Observations `[B, …]`: an array, a tensor or a list of them.
            state: The state before; None or nothing: the initial one.
            actions: The actions before; None: zeros.
            rewards: The rewards before `[B]`, likewise.
        """
        import torch
        import tree

        parameters = self._module.parameters()
        device = next((p.device for p in parameters), torch.device("cpu"))
        space = self._module.observation_space
        if getattr(space, "shape", None) is not None:
            obs = self._with_steps_before(stacked(obs), actions, rewards)
            if not isinstance(obs, torch.Tensor) and space.dtype.kind == "f":
                obs = obs.astype(space.dtype)
        found = tree.map_structure(lambda part: torch.as_tensor(part, device=device), obs)
        if not self._module.is_stateful():
            return {"obs": found}
        count = len(tree.flatten(found)[0])
        if state is None or not len(state):
            state = [np.repeat(part[None], count, 0) for part in initial_state(self._module)]
        parts = [torch.as_tensor(np.asarray(part, np.float32), device=device) for part in state]
        found = tree.map_structure(lambda part: part[:, None], found)
        return {"obs": found, "state_in": nest_state(self._module, parts)}

    def _with_steps_before(self, obs: Any, actions: Any, rewards: Any) -> Any:
        """Observations with the steps before behind them, where they have none yet."""
        if not (self._actions or self._rewards):
            return obs
        if np.shape(obs)[-1] == self._module.observation_space.shape[-1]:
            return obs
        flat = np.asarray(obs).reshape(len(obs), -1)
        return np.concatenate([flat, self._steps_before(actions, rewards, len(obs))], axis=-1)

    def _steps_before(self, actions: Any, rewards: Any, count: int) -> Any:
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
    """A list of arrays or numbers as an array; what is one already stays."""
    if hasattr(values, "shape") or isinstance(values, (dict, tuple)):
        return values
    if values is None:
        raise TypeError("There is nothing to compute with: None.")
    array = np.asarray([in_numpy(value) for value in values])
    return array.astype(np.float32) if array.dtype == np.float64 else array


def in_numpy(value: Any) -> Any:
    """A tensor as an array; what is none stays."""
    return value.detach().cpu().numpy() if hasattr(value, "detach") else value
