"""Ray's SAC, which replays columns in the place of episodes, and its old learner."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import gymnasium
import numpy as np
import torch
from ray.rllib.algorithms import sac
from ray.rllib.core.columns import Columns

from rllib_compat.algorithms.base import OwnEnvRunnersConfig
from rllib_compat.algorithms.legacy_training import LegacyTraining
from rllib_compat.algorithms.objectives import td_targets
from rllib_compat.algorithms.off_policy import OffPolicyAlgorithm
from rllib_compat.ray_versions import learners

if TYPE_CHECKING:
    from rllib_compat.ray_versions.types import AlgorithmConfig


class SAC(OffPolicyAlgorithm, sac.SAC):  # type: ignore[misc]  # Ray has no types
    """Ray's SAC with a replay buffer of columns."""

    @classmethod
    def get_default_config(cls) -> SACConfig:
        """The config that it starts from."""
        return SACConfig()


class SACConfig(OwnEnvRunnersConfig, sac.SACConfig):  # type: ignore[misc]
    """The config of Ray's SAC, with all its settings.

    Args:
        algo_class: The algorithm, if it is a subclass of `SAC`.
    """

    def __init__(self, algo_class: type | None = None) -> None:
        super().__init__(algo_class=algo_class or SAC)

    def get_default_learner_class(self) -> Any:
        """Ray's learner, which takes columns."""
        return learners.array_batch_learner(super().get_default_learner_class())


class LegacySACLearner:
    """Learns discrete actions as `agents/sac` did, and tells what that told; a first base.

    Ray's own learner takes the entropy of an action space without any shape for its target, -1,
    which no policy comes near, so that the temperature only falls. And its actor looks at the
    smaller value of both critics, where the old one looked at the first.
    """

    legacy: ClassVar[LegacyTraining]
    module: Any
    metrics: Any

    def _get_target_entropy(self, module_id: str) -> Any:
        """Of discrete actions 98 % of their largest entropy, unless the config says another."""
        space = self.module[module_id].unwrapped().action_space
        config = self.config.get_config_for_module(module_id)  # type: ignore[attr-defined]
        if isinstance(space, gymnasium.spaces.Discrete) and config.target_entropy in (None, "auto"):
            return 0.98 * float(np.log(space.n))
        return super()._get_target_entropy(module_id)  # type: ignore[misc]  # of the real learner

    def compute_loss_for_module(
        self,
        *,
        module_id: str,
        config: AlgorithmConfig,
        batch: Mapping[str, Any],
        fwd_out: Mapping[str, Any],
    ) -> Any:
        """Ray's loss, with the actor's own of discrete actions.

        Told are the values of what was done, where Ray tells those of what would be done by now.
        """
        loss = super().compute_loss_for_module(  # type: ignore[misc]  # of the real learner
            module_id=module_id, config=config, batch=batch, fwd_out=fwd_out
        )
        values = fwd_out["qf_preds"].detach()
        told = {"qf_mean": values.mean(), "qf_max": values.max(), "qf_min": values.min()}
        if "action_probs" in fwd_out:
            weight = self.curr_log_alpha[module_id].detach().exp()  # type: ignore[attr-defined]
            worth = values - weight * fwd_out["action_log_probs"]
            policy_loss = -(fwd_out["action_probs"] * worth).sum(-1).mean()
            learners.replace_loss(self, module_id, "policy_loss", policy_loss)
            told["policy_loss"] = policy_loss
        if not self.legacy.huber_loss:
            told |= self._squared_errors(module_id, config, batch, fwd_out)
        self.metrics.log_dict(told, key=module_id, window=1)
        return loss

    def _squared_errors(
        self,
        module_id: str,
        config: AlgorithmConfig,
        batch: Mapping[str, Any],
        fwd_out: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Lets the critics learn from the squares of all their errors; their losses."""
        weight = self.curr_log_alpha[module_id].detach().exp()  # type: ignore[attr-defined]
        discrete, actions = "action_probs" in fwd_out, batch[Columns.ACTIONS]
        if discrete:
            worth = fwd_out["q_target_next"] - weight * fwd_out["action_log_probs_next"]
            after = (fwd_out["action_probs_next"] * worth).sum(-1)
        else:
            after = fwd_out["q_target_next"] - weight * fwd_out["logp_next_resampled"]
        discount = config.gamma**config.n_step
        rewards, ended = batch[Columns.REWARDS], batch[Columns.TERMINATEDS]
        targets = td_targets(rewards, ended, after, discount).detach()
        losses = {}
        for name in ("qf", "qf_twin") if config.twin_q else ("qf",):
            said = fwd_out[f"{name}_preds"]
            if discrete:
                said = torch.take_along_dim(said, actions.long().view(-1, 1), dim=-1).squeeze(-1)
            losses[f"{name}_loss"] = 0.5 * (said - targets).square().mean()
            learners.replace_loss(self, module_id, f"{name}_loss", losses[f"{name}_loss"])
        return losses
