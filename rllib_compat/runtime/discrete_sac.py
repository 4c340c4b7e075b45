"""SAC's losses for discrete actions, on every supported Ray."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import gymnasium
import numpy as np
import torch
from ray.rllib.core.columns import Columns
from torch.nn.functional import huber_loss

from rllib_compat.ray_versions import learners

if TYPE_CHECKING:
    from rllib_compat.ray_versions.types import AlgorithmConfig, Learner

#: The module's output with the log-probabilities at the next observations.
NEXT_LOGPS = "action_log_probs_next"


class DiscreteSACLearner:
    """A mixin that learns discrete actions as `agents/sac` did; the first base of a learner class.

    Ray's own learner supports them since 2.48. Its default target entropy is -1, which no policy
    reaches, so that the temperature only falls; and its actor uses the smaller value of both
    critics, where the old one used the first.
    """

    squares_errors = False
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
        """Computes the losses of discrete actions; of others, Ray's."""
        if "action_probs" not in fwd_out:
            return super().compute_loss_for_module(  # type: ignore[misc]  # of the real learner
                module_id=module_id, config=config, batch=batch, fwd_out=fwd_out
            )
        losses, errors = self.critic_losses(module_id, config, batch, fwd_out)
        of_actor, stats = self._discrete_losses(module_id, config, fwd_out)
        losses |= of_actor
        learners.log_td_errors(cast("Learner", self), module_id, errors)
        self.take_losses(module_id, losses, stats | {"td_error_mean": errors.mean()})
        return sum(losses.values())

    def take_losses(
        self, module_id: str, losses: Mapping[str, Any], stats: Mapping[str, Any]
    ) -> None:
        """Replaces Ray's losses with these, and logs them with other statistics."""
        for name, value in losses.items():
            learners.replace_loss(self, module_id, name, value)
        self.metrics.log_dict({**stats, **losses}, key=module_id, window=1)

    def _alpha(self, module_id: str) -> torch.Tensor:
        """The weight of the entropy, without a gradient."""
        return self.curr_log_alpha[module_id].detach().exp()

    def critic_losses(
        self,
        module_id: str,
        config: AlgorithmConfig,
        batch: Mapping[str, Any],
        fwd_out: Mapping[str, Any],
    ) -> tuple[dict[str, Any], torch.Tensor]:
        """Computes the critics' losses by name, and the mean absolute TD error of each step."""
        discrete, actions = "action_probs" in fwd_out, batch[Columns.ACTIONS]
        if discrete:
            worth = fwd_out["q_target_next"] - self._alpha(module_id) * fwd_out[NEXT_LOGPS]
            after = (fwd_out["action_probs_next"] * worth).sum(-1)
        else:
            logp = fwd_out["logp_next_resampled"]
            after = fwd_out["q_target_next"] - self._alpha(module_id) * logp
        discount = config.gamma**config.n_step
        rewards, ended = batch[Columns.REWARDS], batch[Columns.TERMINATEDS]
        targets = (rewards + discount * (1.0 - ended.float()) * after).detach()
        losses, distances = {}, []
        for name in ("qf", "qf_twin") if config.twin_q else ("qf",):
            predicted = fwd_out[f"{name}_preds"]
            if discrete:
                predicted = torch.take_along_dim(
                    predicted, actions.long().view(-1, 1), dim=-1
                ).squeeze(-1)
            distances.append((predicted - targets).detach().abs())
            if self.squares_errors:
                each = (predicted - targets) ** 2 / 2
            else:
                each = batch["weights"] * huber_loss(predicted, targets, reduction="none")
            losses[f"{name}_loss"] = each.mean()
        return losses, torch.stack(distances).mean(0)

    def _discrete_losses(
        self, module_id: str, config: AlgorithmConfig, fwd_out: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Computes the losses of the policy and the temperature, and other statistics."""
        alpha, log_alpha = self._alpha(module_id), self.curr_log_alpha[module_id]
        probabilities, logps = fwd_out["action_probs"], fwd_out["action_log_probs"]
        target = target_entropy(self.module[module_id].unwrapped().action_space, config)
        worth = alpha * logps - fwd_out["qf_preds"].detach()
        entropy = -(probabilities * logps).sum(-1).detach()
        losses = {
            "policy_loss": (probabilities * worth).sum(-1).mean(),
            "alpha_loss": (log_alpha * (entropy - target)).mean(),
        }
        return losses, {
            "alpha_value": alpha[0],
            "log_alpha_value": log_alpha.detach()[0],
            "target_entropy": target,
            "logps": logps.detach().mean(),
        }


def target_entropy(space: gymnasium.Space[Any], config: AlgorithmConfig) -> float:
    """Returns the target entropy; the default for discrete actions is 98 % of the maximum."""
    if config.target_entropy not in (None, "auto"):
        return float(config.target_entropy)
    if isinstance(space, gymnasium.spaces.Discrete):
        return 0.98 * float(np.log(space.n))
    return -float(np.prod(space.shape or ()))
