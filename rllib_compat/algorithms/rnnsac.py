"""RNNSAC: soft actor-critic with recurrent networks (`agents/sac/rnnsac` of Ray 1.6 – 2.x).

Sequences are replayed as R2D2 replays them (`sequences`); the losses are those of SAC.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from ray.rllib.core.columns import Columns

from rllib_compat.algorithms.base import ActorCriticLearner, Batch, Loss, register
from rllib_compat.algorithms.objectives import huber, td_targets
from rllib_compat.algorithms.replay import WEIGHTS
from rllib_compat.algorithms.sequence_replay import (
    SequenceLearner,
    SequenceReplayAlgorithm,
    SequenceReplayConfig,
)
from rllib_compat.networks.modules.rnnsac import (
    LOGP,
    NEXT_LOGP,
    NEXT_VALUE,
    TAKEN,
    VALUE,
    RNNSACModule,
)
from rllib_compat.runtime.learners import target_entropy

if TYPE_CHECKING:
    from rllib_compat.ray_versions.types import AlgorithmConfig


class RNNSAC(SequenceReplayAlgorithm):
    """Soft actor-critic, trained from sequences."""


class RNNSACConfig(SequenceReplayConfig):
    """The config of RNNSAC.

    Its module is recurrent: `rl_module(model_config={"use_lstm": True})`. `max_seq_len` of the
    model config says from how many steps a sequence is learned; the burn-in comes before them.
    """

    following = True

    default_module_class = RNNSACModule
    module_settings = {
        "twin_q": "Whether there is a second critic; the smaller value counts.",
        "initial_alpha": "How much entropy counts at first.",
        "epsilon": "How probably it acts at random, a number or a schedule `[[step, epsilon], …]`; "
        "otherwise it takes the best of Discrete actions. None: it draws of its distribution.",
    }
    schedules = {"epsilon": "epsilon"}

    settings = {
        "target_entropy": "The entropy that is aimed at, as a number, or `auto`: minus the number "
        "of a Box's parts, or 0.98 times the logarithm of the number of Discrete actions.",
        "actor_lr": "The policy's learning rate, or a schedule `[[step, rate], …]`.",
        "critic_lr": "That of the critics.",
        "alpha_lr": "That of how much entropy counts.",
    }

    @property
    def _model_config_auto_includes(self) -> dict[str, Any]:
        return {**super()._model_config_auto_includes, "zero_init_states": self.zero_init_states}


class RNNSACTorchLearner(SequenceLearner, ActorCriticLearner):
    """Computes the losses: what `RNNSACTorchPolicy` computed."""

    rates = {"policy": "actor_lr", "qf": "critic_lr", "alpha": "alpha_lr", "qf_twin": "critic_lr"}
    epsilon = 1e-7

    def module_loss(
        self, module_id: str, config: AlgorithmConfig, batch: Batch, out: Batch
    ) -> Loss:
        """The sum of all losses; none trains what another does."""
        module, learned = self.module[module_id].unwrapped(), batch[Columns.LOSS_MASK]
        log_alpha, taken = module.log_alpha, out[TAKEN]
        alpha, count = log_alpha.exp().detach(), learned.sum()
        entropy = target_entropy(module.action_space, config)
        goals = td_targets(
            batch[Columns.REWARDS],
            batch[Columns.TERMINATEDS],
            out[NEXT_VALUE] - alpha * out[NEXT_LOGP],
            config.gamma**config.n_step,
        )
        errors = taken - goals
        terms = rnnsac_terms(errors, batch[WEIGHTS], out[VALUE], out[LOGP], log_alpha, entropy)
        losses = [torch.where(learned, term, 0.0).sum((-2, -1)) / count for term in terms]
        critic_losses, actor_loss, alpha_loss = losses
        td_errors = torch.where(learned, errors.detach().abs().mean(0), 0.0)
        self.sequence_errors[module_id] = td_errors.mean(-1).cpu().numpy()
        return actor_loss + critic_losses.sum() + alpha_loss, {
            "actor_loss": actor_loss,
            "critic_loss": critic_losses.mean(),
            "alpha_loss": alpha_loss,
            "alpha_value": alpha.squeeze(),
            "log_alpha_value": log_alpha.detach().squeeze(),
            "target_entropy": entropy,
            "mean_q": taken[0][learned].mean(),
            "min_q": taken[0][learned].min(),
            "max_q": taken[0][learned].max(),
            "mean_td_error": td_errors.sum() / count,
        }


def rnnsac_terms(
    errors: torch.Tensor,
    weights: torch.Tensor,
    values: torch.Tensor,
    logp: torch.Tensor,
    log_alpha: torch.Tensor,
    target_entropy: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The losses of each step: of each critic `[critics, B, T]`, the policy and alpha `[B, T]`.

    Args:
        errors: What each critic is wrong by, `[critics, B, T]`.
        weights: The importance of each step, `[B, T]`.
        values: What critics expect of the policy's own actions, `[B, T]`.
        logp: The log probabilities of these, `[B, T]`.
        log_alpha: The logarithm of how much entropy counts.
        target_entropy: The entropy that is aimed at.
    """
    alpha_losses = -log_alpha * (logp.detach() + target_entropy)
    return weights * huber(errors), log_alpha.exp().detach() * logp - values, alpha_losses


register(RNNSAC, RNNSACConfig, RNNSACTorchLearner)
