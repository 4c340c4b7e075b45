"""`Policy` of Ray 2.x: Ray's class, whose `from_checkpoint` executes nothing of a checkpoint."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from ray.rllib.policy import policy

from rllib_compat.conversion.given import Given
from rllib_compat.neutral.errors import GoneError
from rllib_compat.ray_versions import startup
from rllib_compat.runtime.acting_policies import ActingPolicy
from rllib_compat.trainer import rollouts
from rllib_compat.trainer.checkpoints import path_in_code
from rllib_compat.trainer.load import LoadedAlgorithm, load
from rllib_compat.trainer.trainer import Trainer


class _SameAsRays(type(policy.Policy)):  # type: ignore[misc]  # Ray has no types
    """Ray's policies and ours are instances of this class, and not of its subclasses."""

    def __instancecheck__(cls, instance: object) -> bool:
        ours = cls is Policy and isinstance(instance, (policy.Policy, ActingPolicy))
        return ours or bool(super().__instancecheck__(instance))


class Policy(policy.Policy, metaclass=_SameAsRays):  # type: ignore[misc]
    """Ray's class, to derive from."""

    @classmethod
    def from_checkpoint(cls, checkpoint: Any, policy_ids: Collection[str] | None = None) -> Any:
        """The policies of a checkpoint of any Ray, in this process; no environment is needed.

        Args:
            checkpoint: The checkpoint of an algorithm or a policy: its path, or Tune's object.
            policy_ids: Which policies to take; None for all.

        Returns:
            The policy of a policy's checkpoint; of an algorithm's, a dict of policies by id.
        """
        if not isinstance(checkpoint, (str, Path)):
            with getattr(checkpoint, "checkpoint", checkpoint).as_directory() as folder:
                return cls.from_checkpoint(folder, policy_ids)
        path = Path(path_in_code(checkpoint))
        given = Given(
            num_env_runners=0,
            num_gpus=0,
            policies=tuple(policy_ids or ()),
            overrides=rollouts.EVALUATION,
        )
        with startup.without_cluster():
            trainer = Trainer.around(LoadedAlgorithm(load(path, given=given), None, None))
        found = dict(trainer.workers.local_worker().policy_map)
        policies = {policy_id: trainer.get_policy(policy_id) for policy_id in found}
        if path.name.startswith("policy_state.") or any(path.glob("policy_state.*")):
            (alone,) = policies.values()
            return alone
        return policies

    @staticmethod
    def from_state(state: object) -> Any:
        """Raises an error: a state is no checkpoint."""
        raise GoneError(
            "A policy is not made of a state any more.",
            where="Policy.from_state",
            fix="Policy.from_checkpoint(path) makes one of a checkpoint, and "
            "trainer.get_policy(policy_id).set_state(state) sets what get_state() gave",
        )
