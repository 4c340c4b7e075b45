"""RNNSAC: soft actor-critic with recurrent networks (`agents/sac/rnnsac` of Ray 1.6 – 2.x).

Sequences are replayed as R2D2 replays them (`sequences`); the losses are those of SAC.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from ray.rllib.core.columns import Columns

from rllib_compat.algorithms.base import register
from rllib_compat.algorithms.objectives import huber, td_targets
from rllib_compat.algorithms.replay import WEIGHTS
from rllib_compat.algorithms.sequence_replay import (
    SequenceLearner,
    SequenceReplayAlgorithm,
    SequenceReplayConfig,
)
from rllib_compat.networks.graph import CRITIC, POLICY, TWIN
from rllib_compat.networks.modules.rnnsac import (
    LOGP,
    NEXT_LOGP,
    NEXT_VALUE,
    TAKEN,
    VALUE,
    RNNSACModule,
)

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
    }
    settings = {
        "target_entropy": "The entropy that is aimed at, as a number, or `auto`: minus the number "
        "of a Box's parts, or 0.98 times the logarithm of the number of Discrete actions.",
        "actor_lr": "The policy's learning rate, or a schedule `[[step, rate], …]`.",
        "critic_lr": "That of the critics.",
        "alpha_lr": "That of how much entropy counts.",
    }

    @property
    def _model_config_auto_includes(self) -> dict[str, Any]:
        return {
            **super()._model_config_auto_includes,
            "zero_init_states": self.zero_init_states,
        }


class RNNSACTorchLearner(SequenceLearner):
    """Computes the losses: what `RNNSACTorchPolicy` computed."""

    def configure_optimizers_for_module(
        self, module_id: str, config: AlgorithmConfig | None = None
    ) -> None:
        """Makes an Adam for the policy, one for each critic, and one for alpha."""
        config = self.config.get_config_for_module(module_id)
        module = self.module[module_id].unwrapped()
        parts = {
            "policy": (module.net[POLICY].parameters(), config.actor_lr),
            "qf": (module.net[CRITIC].parameters(), config.critic_lr),
            "alpha": ([module.log_alpha], config.alpha_lr),
        }
        if TWIN in module.net:
            parts["qf_twin"] = (module.net[TWIN].parameters(), config.critic_lr)
        for name, (parameters, rate) in parts.items():
            weights = list(parameters)
            self.register_optimizer(
                module_id=module_id,
                optimizer_name=name,
                optimizer=torch.optim.Adam(weights, eps=1e-7),
                params=weights,
                lr_or_lr_schedule=rate,
            )

    def compute_loss_for_module(
        self,
        *,
        module_id: str,
        config: AlgorithmConfig,
        batch: Mapping[str, Any],
        fwd_out: Mapping[str, Any],
    ) -> Any:
        """The sum of all losses; none trains what another does."""
        module, learned = self.module[module_id].unwrapped(), batch[Columns.LOSS_MASK]
        alpha, count = module.log_alpha.exp().detach(), learned.sum()
        entropy = _target_entropy(module.action_space, config)

        def mean(values: torch.Tensor) -> Any:
            return torch.where(learned, values, 0.0).sum() / count

        soft = fwd_out[NEXT_VALUE] - alpha * fwd_out[NEXT_LOGP]
        goals = td_targets(
            batch[Columns.REWARDS],
            batch[Columns.TERMINATEDS],
            soft,
            config.gamma**config.n_step,
        )
        taken = fwd_out[TAKEN]
        errors = taken - goals
        critic_losses = [mean(batch[WEIGHTS] * each) for each in huber(errors)]
        actor_loss = mean(alpha * fwd_out[LOGP] - fwd_out[VALUE])
        alpha_loss = -mean(module.log_alpha * (fwd_out[LOGP].detach() + entropy))
        td_errors = torch.where(learned, errors.detach().abs().mean(0), 0.0)
        told = {
            "actor_loss": actor_loss,
            "critic_loss": torch.stack(critic_losses).mean(),
            "alpha_loss": alpha_loss,
            "alpha_value": alpha.squeeze(),
            "log_alpha_value": module.log_alpha.detach().squeeze(),
            "target_entropy": entropy,
            "mean_q": taken[0][learned].mean(),
            "min_q": taken[0][learned].min(),
            "max_q": taken[0][learned].max(),
            "mean_td_error": td_errors.sum() / count,
        }
        self.metrics.log_dict(told, key=module_id, window=1)
        self.td_errors[module_id] = td_errors.mean(-1).cpu().numpy()
        return actor_loss + sum(critic_losses) + alpha_loss


def _target_entropy(space: Any, config: AlgorithmConfig) -> float:
    if config.target_entropy not in (None, "auto"):
        return float(config.target_entropy)
    return 0.98 * float(np.log(space.n)) if hasattr(space, "n") else -float(np.prod(space.shape))


register(RNNSAC, RNNSACConfig, RNNSACTorchLearner)
