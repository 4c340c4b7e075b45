"""Ray's SAC, which replays columns in the place of episodes, and its old learner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from ray.rllib.algorithms import sac

from rllib_compat.algorithms.base import OwnEnvRunnersConfig
from rllib_compat.algorithms.legacy_training import LegacyTraining
from rllib_compat.algorithms.off_policy import OffPolicyAlgorithm
from rllib_compat.ray_versions import learners
from rllib_compat.runtime.learners import DiscreteSACLearner

if TYPE_CHECKING:
    from rllib_compat.algorithms.base import Batch
    from rllib_compat.ray_versions.types import AlgorithmConfig


class SAC(OffPolicyAlgorithm, sac.SAC):  # type: ignore[misc]  # Ray has no types
    """Ray's SAC with a replay buffer of columns."""

    @classmethod
    def get_default_config(cls) -> SACConfig:
        """The config that it starts from."""
        return SACConfig()


class SACConfig(OwnEnvRunnersConfig, sac.SACConfig):  # type: ignore[misc]
    """The config of Ray's SAC, with all its settings."""

    def __init__(self, algo_class: type | None = None) -> None:
        super().__init__(algo_class=algo_class or SAC)

    def get_default_learner_class(self) -> Any:
        """Ray's learner, which takes columns."""
        return learners.array_batch_learner(super().get_default_learner_class())


class LegacySACLearner(DiscreteSACLearner):
    """Learns as `agents/sac` did, with its metrics; a first base."""

    legacy: ClassVar[LegacyTraining]

    @property
    def squares_errors(self) -> bool:  # type: ignore[override]
        """Whether critics learn from the squares of all their errors."""
        return not self.legacy.huber_loss

    def compute_loss_for_module(
        self, *, module_id: str, config: AlgorithmConfig, batch: Batch, fwd_out: Batch
    ) -> Any:
        """The losses; of critics of vectors Ray's, unless errors were squared.

        Logged are the values of the actions that were taken; Ray logs those of actions of the
        current policy.
        """
        loss = super().compute_loss_for_module(
            module_id=module_id, config=config, batch=batch, fwd_out=fwd_out
        )
        values = fwd_out["qf_preds"].detach()
        losses: dict[str, Any] = {}
        if self.squares_errors and "action_probs" not in fwd_out:
            losses, _ = self.critic_losses(module_id, config, batch, fwd_out)
        logged = {"qf_mean": values.mean(), "qf_max": values.max(), "qf_min": values.min()}
        self.take_losses(module_id, losses, logged)
        return loss
