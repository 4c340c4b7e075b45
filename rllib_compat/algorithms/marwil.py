"""MARWIL and BC with `bc_logstd_coeff`, with which Ray's own learner fails (2.40 – 2.60)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from ray.rllib.core.columns import Columns
from ray.rllib.evaluation.postprocessing import Postprocessing

from rllib_compat.algorithms.objectives import explained_variance

if TYPE_CHECKING:
    from rllib_compat.algorithms.base import Batch
    from rllib_compat.ray_versions.types import AlgorithmConfig


class LegacyMARWILLearner:
    """Adds the logarithm of the deviation to what is cloned; the first base of a learner class.

    All else is Ray's loss, which is that of the old Rays.
    """

    module: Any
    metrics: Any
    moving_avg_sqd_adv_norms_per_module: Any

    def compute_loss_for_module(
        self, *, module_id: str, config: AlgorithmConfig, batch: Batch, fwd_out: Batch
    ) -> Any:
        """Ray's loss, or with `bc_logstd_coeff` what `marwil_loss` computed."""
        if not config.bc_logstd_coeff:
            return super().compute_loss_for_module(  # type: ignore[misc]  # of the real learner
                module_id=module_id, config=config, batch=batch, fwd_out=fwd_out
            )
        module = self.module[module_id].unwrapped()
        real = batch.get(Columns.LOSS_MASK, ...)
        logits = fwd_out[Columns.ACTION_DIST_INPUTS]
        logp = module.get_train_action_dist_cls().from_logits(logits).logp(batch[Columns.ACTIONS])
        wanted = logp + config.bc_logstd_coeff * logits.chunk(2, dim=-1)[1].mean(dim=-1)
        logged = {}
        if config.beta:
            said = module.compute_values(batch, fwd_out.get(Columns.EMBEDDINGS))
            targets = batch[Postprocessing.VALUE_TARGETS]
            gains = targets - said
            vf_loss = 0.5 * gains[real].square().mean()
            norm = self._norm(module_id, config, gains[real].detach())
            wanted = wanted * (config.beta * gains.detach() / (1e-8 + norm.sqrt())).exp()
            explained = explained_variance(targets[real], said[real])
            logged = {"vf_loss": vf_loss, "vf_explained_variance": explained}
            logged["moving_avg_sqd_adv_norm"] = norm
        policy_loss = -wanted[real].mean()
        self.metrics.log_dict({"policy_loss": policy_loss, **logged}, key=module_id, window=1)
        return policy_loss + config.vf_coeff * logged.get("vf_loss", torch.zeros_like(policy_loss))

    def _norm(self, module_id: str, config: AlgorithmConfig, gains: torch.Tensor) -> Any:
        """The mean of the squared advantages, which follows those of a batch."""
        norms = self.moving_avg_sqd_adv_norms_per_module
        rate = config.moving_average_sqd_adv_norm_update_rate
        norms[module_id] = norms[module_id] + rate * (gains.square().mean() - norms[module_id])
        return norms[module_id]
