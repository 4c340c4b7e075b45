"""What the env runners for one agent and for many have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rllib_compat.ray_versions import sampling
from rllib_compat.ray_versions.get_actions import replace_get_actions
from rllib_compat.ray_versions.metrics import count_once


class LegacyRunner:
    """The first base of an env runner, before Ray's.

    Attributes:
        bypasses_connectors: Whether steps go past connectors that decide nothing.
        draws_in_numpy: Whether actions are then drawn without torch.
    """

    bypasses_connectors = True
    draws_in_numpy = True

    def __init__(self: Any, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        sampling.unmask_zero_q_values(self)  # Ray 2.40 has no `make_module`
        sampling.set_own_exploration(self)
        replace_get_actions(self)

    def make_module(self: Any) -> None:
        """Makes the modules, which only ever act here."""
        super().make_module()  # type: ignore[misc]  # of Ray's
        sampling.prepare_modules_for_sampling(self)

    def apply(self: Any, func: Callable[..., Any], *args: object, **kwargs: object) -> Any:
        """Calls `func` with this runner; an error is the caller's, or Ray's if it is tolerated."""
        if sampling.tolerates_failures(self.config):
            return super().apply(func, *args, **kwargs)  # type: ignore[misc]  # of Ray's
        return func(self, *args, **kwargs)

    def get_metrics(self: object) -> Any:
        """What was counted and timed since the last call, right however often it samples."""
        return count_once(super().get_metrics())  # type: ignore[misc]  # of Ray's

    def _try_env_step(self, actions: object) -> Any:
        """Takes a step; an error is the environment's.

        In Ray 2.60 that is the cause of a RuntimeError without a text; in 2.40 it is not.
        """
        try:
            return super()._try_env_step(actions)  # type: ignore[misc]  # of Ray's
        except RuntimeError as error:
            if error.args or error.__cause__ is None:
                raise
            raise error.__cause__ from None
