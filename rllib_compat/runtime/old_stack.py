"""What the old API stack calls callbacks with: legacy objects already, under the legacy names."""

from __future__ import annotations

from typing import Any

from rllib_compat.ray_versions import old_stack
from rllib_compat.runtime.policy_mapping import ONLY_POLICY
from rllib_compat.runtime.workers import user_env


class OldStackEvents:
    """The events of a `CallbackAdapter` that only the old API stack knows."""

    def _fire(self, event: str, values: dict[str, Any], legacy: dict[str, Any]) -> None:
        raise NotImplementedError

    def on_sub_environment_created(self, **kwargs: Any) -> None:
        """Passes one of the worker's environments on, without any wrapper of this package."""
        env = kwargs["sub_environment"]
        mine = {"sub_environment": user_env(env) if hasattr(env, "unwrapped") else env}
        self._fire("on_environment_created", kwargs, mine)

    def on_create_policy(self, **kwargs: Any) -> None:
        """Passes a policy on."""
        self._fire("on_create_policy", kwargs, {})

    def on_postprocess_trajectory(self, **kwargs: Any) -> None:
        """Passes an agent's trajectory on; since Ray 2.1, the originals have the policy's id."""
        originals = {agent: given[-2:] for agent, given in kwargs["original_batches"].items()}
        self._fire("on_postprocess_trajectory", kwargs, {"original_batches": originals})

    def on_sample_batch(self, **kwargs: Any) -> None:
        """Passes a sample on; that of one policy for all was not kept by policy until Ray 2.0."""
        old_stack.give_batches_their_old_names()
        samples = kwargs["samples"]
        by_policy = getattr(samples, "policy_batches", {})
        if set(by_policy) == {ONLY_POLICY}:
            samples = by_policy[ONLY_POLICY]
        self._fire("on_sample_end", kwargs, {"samples": samples})

    def on_learn_on_batch(self, **kwargs: Any) -> None:
        """Passes a policy's train batch on."""
        self._fire("on_learn_on_batch", kwargs, {})
