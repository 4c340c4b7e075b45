"""`pg_torch_policy`, `pg_tf_policy` and `utils` of PG."""

from __future__ import annotations

from typing import Any

from rllib_compat.algorithms.old_stack_policies import PGTorchPolicy
from rllib_compat.legacy.policies.mixins import tower_mean

__all__ = ["pg_loss_stats", "pg_tf_loss", "pg_torch_loss", "post_process_advantages"]

pg_torch_loss = pg_tf_loss = PGTorchPolicy.loss
post_process_advantages = PGTorchPolicy.postprocess_trajectory


def pg_loss_stats(policy: Any, train_batch: object) -> dict[str, float]:
    """The statistics of the last loss, for the results."""
    return {"policy_loss": tower_mean(policy, "policy_loss")}
