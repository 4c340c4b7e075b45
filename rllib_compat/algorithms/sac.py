"""Ray's SAC, which replays columns in the place of episodes, and its old learner."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, cast

import gymnasium
import numpy as np
import torch
from ray.rllib.algorithms import sac
from ray.rllib.core.columns import Columns

from rllib_compat.algorithms.base import OwnEnvRunnersConfig
from rllib_compat.algorithms.legacy_training import LegacyTraining
from rllib_compat.algorithms.objectives import huber, td_targets
from rllib_compat.algorithms.off_policy import OffPolicyAlgorithm
from rllib_compat.ray_versions import learners

if TYPE_CHECKING:
    from rllib_compat.ray_versions.types import AlgorithmConfig, Learner

#: What the learner gets of the next observations, beside their `action_probs_next`.
NEXT_LOGPS = "action_log_probs_next"


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
    """Learns as `agents/sac` did, and tells what that told; a first base.

    Ray's own learner takes the entropy of discrete actions, a space without any shape, for a target
    of -1, which no policy comes near, so that the temperature only falls; its actor looks at the
    smaller value of both critics, where the old one looked at the first. It learns them since Ray
    2.48 only. So their losses are all computed here.
    """

    legacy: ClassVar[LegacyTraining]
    module: Any
    metrics: Any
    curr_log_alpha: Mapping[str, torch.Tensor]

    def compute_loss_for_module(
        self,
        *,
        module_id: str,
        config: AlgorithmConfig,
        batch: Mapping[str, Any],
        fwd_out: Mapping[str, Any],
    ) -> Any:
        """The losses of discrete actions; of others those of Ray, unless errors are squared.

        Told are the values of what was done, where Ray tells those of what would be done by now.
        """
        values = fwd_out["qf_preds"].detach()
        told = {"qf_mean": values.mean(), "qf_max": values.max(), "qf_min": values.min()}
        losses: dict[str, Any] = {}
        discrete = "action_probs" in fwd_out
        if discrete or not self.legacy.huber_loss:
            losses, errors = self._critic_losses(module_id, config, batch, fwd_out)
        if discrete:
            of_actor, known = self._discrete_losses(module_id, config, fwd_out)
            losses |= of_actor
            told |= known | {"td_error_mean": errors.mean()}
            learners.log_td_errors(cast("Learner", self), module_id, errors)
            loss = sum(losses.values())
        else:
            loss = super().compute_loss_for_module(  # type: ignore[misc]  # of the real learner
                module_id=module_id, config=config, batch=batch, fwd_out=fwd_out
            )
        for name, value in losses.items():
            learners.replace_loss(self, module_id, name, value)
        self.metrics.log_dict(told | losses, key=module_id, window=1)
        return loss

    def _alpha(self, module_id: str) -> torch.Tensor:
        """How much entropy counts, without a gradient."""
        return self.curr_log_alpha[module_id].detach().exp()

    def _critic_losses(
        self,
        module_id: str,
        config: AlgorithmConfig,
        batch: Mapping[str, Any],
        fwd_out: Mapping[str, Any],
    ) -> tuple[dict[str, Any], torch.Tensor]:
        """The critics' losses, by name; and by how much both are wrong about each step."""
        discrete, actions = "action_probs" in fwd_out, batch[Columns.ACTIONS]
        if discrete:
            worth = fwd_out["q_target_next"] - self._alpha(module_id) * fwd_out[NEXT_LOGPS]
            after = (fwd_out["action_probs_next"] * worth).sum(-1)
        else:
            logp = fwd_out["logp_next_resampled"]
            after = fwd_out["q_target_next"] - self._alpha(module_id) * logp
        discount = config.gamma**config.n_step
        rewards, ended = batch[Columns.REWARDS], batch[Columns.TERMINATEDS]
        targets = td_targets(rewards, ended, after, discount).detach()
        losses, distances = {}, []
        for name in ("qf", "qf_twin") if config.twin_q else ("qf",):
            said = fwd_out[f"{name}_preds"]
            if discrete:
                said = torch.take_along_dim(said, actions.long().view(-1, 1), dim=-1).squeeze(-1)
            errors = said - targets
            distances.append(errors.detach().abs())
            each = batch["weights"] * huber(errors) if self.legacy.huber_loss else errors**2 / 2
            losses[f"{name}_loss"] = each.mean()
        return losses, torch.stack(distances).mean(0)

    def _discrete_losses(
        self, module_id: str, config: AlgorithmConfig, fwd_out: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """The losses of the policy and the temperature, and what else is told of them."""
        alpha, log_alpha = self._alpha(module_id), self.curr_log_alpha[module_id]
        probabilities, logps = fwd_out["action_probs"], fwd_out["action_log_probs"]
        aimed = target_entropy(self.module[module_id].unwrapped().action_space, config)
        worth = alpha * logps - fwd_out["qf_preds"].detach()
        entropy = -(probabilities * logps).sum(-1).detach()
        losses = {
            "policy_loss": (probabilities * worth).sum(-1).mean(),
            "alpha_loss": (log_alpha * (entropy - aimed)).mean(),
        }
        return losses, {
            "alpha_value": alpha[0],
            "log_alpha_value": log_alpha.detach()[0],
            "target_entropy": aimed,
            "logps": logps.detach().mean(),
        }


def target_entropy(space: gymnasium.Space[Any], config: Any) -> float:
    """The entropy that a temperature aims at: of discrete actions 98 % of the most, by default.

    Args:
        space: The actions.
        config: What may have a `target_entropy`.
    """
    if config.target_entropy not in (None, "auto"):
        return float(config.target_entropy)
    if isinstance(space, gymnasium.spaces.Discrete):
        return 0.98 * float(np.log(space.n))
    return -float(np.prod(space.shape or ()))
