"""PG: the plain policy gradient (`rllib/agents/pg` of Ray 0.5 – 1.13, `algorithms/pg` until 2.10).

Its advantages are discounted returns, and nothing is expected after the end of a fragment.
"""

from __future__ import annotations

from typing import Any

from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.apis.value_function_api import ValueFunctionAPI
from ray.rllib.evaluation.postprocessing import Postprocessing

from rllib_compat.algorithms.names import register
from rllib_compat.algorithms.synchronous import (
    PolicyGradientLearner,
    Synchronous,
    SynchronousConfig,
)


class PG(Synchronous):
    """Learns from discounted returns alone."""

    @classmethod
    def get_default_config(cls) -> PGConfig:
        """The config that it starts from."""
        return PGConfig()


class PGConfig(SynchronousConfig):
    """The config of PG; it has no settings of its own.

    Args:
        algo_class: The algorithm, if it is a subclass of `PG`.
    """

    def __init__(self, algo_class: type | None = None) -> None:
        super().__init__(algo_class=algo_class or PG)

    def get_default_learner_class(self) -> type:
        """The learner that computes PG's loss."""
        return PGTorchLearner


class PGTorchLearner(PolicyGradientLearner):
    """Computes PG's loss: what `pg_torch_loss` computed."""

    def compute_loss_for_module(
        self,
        *,
        module_id: str,
        config: Any,  # noqa: ARG002
        batch: Any,
        fwd_out: Any,
    ) -> Any:
        """Minus the mean of each action's log-probability times its discounted return."""
        valid = batch[Columns.LOSS_MASK]
        logp = self.action_distribution(module_id, fwd_out).logp(batch[Columns.ACTIONS])
        loss = -(logp * batch[Postprocessing.ADVANTAGES])[valid].mean()
        self.metrics.log_dict({"policy_loss": loss}, key=module_id, window=1)
        if not isinstance(self.module[module_id].unwrapped(), ValueFunctionAPI):
            return loss  # a network of an old Ray, where PG had no critic
        # No critic learns. Ray's learners and torch's data parallelism want a gradient for each
        # of its parameters nevertheless: zero, from which Adam learns nothing.
        return loss + 0.0 * self.values(module_id, batch, fwd_out).mean()


register(PG)
