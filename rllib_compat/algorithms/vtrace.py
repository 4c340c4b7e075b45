"""What IMPALA and APPO of the old Rays learned of a train batch (`agents/impala`, `appo.py`).

Today's learners compute other numbers: IMPALA's terms are means there and were sums, which matters
where gradients are clipped (`grad_clip`, 40 by default) and for RMSprop's large epsilon; V-trace of
today looks at one step more of each fragment, the last one, which the old Rays took for the value
that is expected after those before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import torch
from ray.rllib.core.columns import Columns

from rllib_compat import ray_versions
from rllib_compat.algorithms.ppo import explained_variance
from rllib_compat.algorithms.ways import Ways

Array = np.ndarray[Any, np.dtype[Any]]


def vtrace(
    rewards: Array,
    values: Array,
    after: float,
    ratios: Array,
    gamma: float,
    most: tuple[float, float],
) -> tuple[Array, Array]:
    """V-trace of one chunk of an episode.

    Args:
        rewards: The rewards, one a step.
        values: What was expected before each step.
        after: What is expected after the last one; 0 where the episode has ended.
        ratios: How much likelier the policy that learns takes each action than that which took it.
        gamma: The discount factor.
        most: The ratios count no more than that: for the values, and for the policy.

    Returns:
        What the critic should say before each step, and the advantages of the actions.
    """
    following = np.append(values[1:], after)
    surprises = np.minimum(ratios, most[0]) * (rewards + gamma * following - values)
    traces, ahead = np.minimum(ratios, 1.0), 0.0
    targets = np.empty(len(rewards))
    for step in reversed(range(len(rewards))):
        ahead = surprises[step] + gamma * traces[step] * ahead
        targets[step] = values[step] + ahead
    gains = rewards + gamma * np.append(targets[1:], after) - values
    return targets, np.minimum(ratios, most[1]) * gains


class OldVTraceLearner:
    """Finds the steps that V-trace looks at; what is common to both learners.

    The last step of a chunk is not learned from, where its episode goes on: it only says what is
    expected after the one before. Without `vtrace_drop_last_ts` it is learned from, too.
    """

    ways: ClassVar[Ways]
    module: Any
    metrics: Any

    def compute_loss_for_module(
        self, *, module_id: str, config: Any, batch: Any, fwd_out: Any
    ) -> Any:
        """The loss over the steps that were learned from."""
        module = self.module[module_id].unwrapped()
        if module.is_stateful() or not getattr(config, "vtrace", True):
            return super().compute_loss_for_module(  # type: ignore[misc]  # of the real learner
                module_id=module_id, config=config, batch=batch, fwd_out=fwd_out
            )
        make = module.get_train_action_dist_cls().from_logits
        acts = make(fwd_out[Columns.ACTION_DIST_INPUTS])
        embeddings = fwd_out.get(Columns.EMBEDDINGS)
        said = module.compute_values(batch, embeddings)
        logp = acts.logp(batch[Columns.ACTIONS])
        judge, judges_logp = self._judge(module, batch, make, acts, logp)
        ratios = (judges_logp - batch[Columns.ACTION_LOGP]).exp()
        rows, targets, gains = self._traced(config, batch, said, ratios)
        terms = self._terms_of(
            module_id,
            config,
            {
                "logp": logp[rows],
                "behaviour": batch[Columns.ACTION_LOGP][rows],
                "judge": judges_logp[rows],
                "entropy": acts.entropy()[rows],
                "errors": (said[rows] - targets).square(),
                "gains": gains,
                "kl": None if judge is acts else judge.kl(acts)[rows],
            },
        )
        terms["vf_explained_var"] = explained_variance(targets, said[rows])
        self.metrics.log_dict(terms, key=module_id, window=1)
        return terms.pop("total_loss")

    def _judge(self, module: Any, batch: Any, make: Any, acts: Any, logp: Any) -> tuple[Any, Any]:  # noqa: ARG002
        """The policy whose ratios count, and its log-probabilities of the actions."""
        return acts, logp.detach()

    def _terms_of(self, module_id: str, config: Any, of: dict[str, Any]) -> dict[str, Any]:
        """The terms of the loss, with the `total_loss`."""
        raise NotImplementedError

    def _traced(self, config: Any, batch: Any, said: Any, ratios: Any) -> tuple[Any, Any, Any]:
        columns = (batch[Columns.REWARDS], said, ratios, batch[Columns.TERMINATEDS])
        rewards, values, weights, ended = (c.detach().cpu().double().numpy() for c in columns)
        most = (config.vtrace_clip_rho_threshold, config.vtrace_clip_pg_rho_threshold)
        rows, targets, gains = [], [], []
        for begin, end in chunks(batch[Columns.LOSS_MASK].cpu().numpy()):
            over = bool(ended[end - 1])
            after = 0.0 if over else float(values[end - 1])
            stop = end if over or not self.ways.drops_last else end - 1
            part = slice(begin, stop)
            found = vtrace(rewards[part], values[part], after, weights[part], config.gamma, most)
            rows.append(np.arange(begin, stop))
            targets.append(found[0])
            gains.append(found[1])
        tensors = (torch.as_tensor(np.concatenate(c), device=said.device) for c in (targets, gains))
        told, advantages = (tensor.to(said.dtype) for tensor in tensors)
        return torch.as_tensor(np.concatenate(rows), device=said.device), told, advantages


def chunks(mask: Array) -> Iterator[tuple[int, int]]:
    """Where chunks begin and end in a batch; after each there is the step that Ray has added."""
    begin = 0
    for end in np.flatnonzero(~mask):
        if end > begin:
            yield begin, int(end)
        begin = int(end) + 1


class OldIMPALALearner(OldVTraceLearner):
    """Computes IMPALA's loss: sums over the steps; the first base of Ray's learner class."""

    def _terms_of(self, module_id: str, config: Any, of: dict[str, Any]) -> dict[str, Any]:
        weight = self.entropy_coeff_schedulers_per_module[module_id].get_current_value()  # type: ignore[attr-defined]
        pi_loss = -(of["logp"] * of["gains"]).sum()
        vf_loss = 0.5 * of["errors"].sum()
        loss = pi_loss + config.vf_loss_coeff * vf_loss - weight * of["entropy"].sum()
        told = {"pi_loss": pi_loss, "vf_loss": vf_loss, "entropy": of["entropy"].mean()}
        return {"total_loss": loss, **told}


class OldAPPOLearner(OldVTraceLearner):
    """Computes APPO's loss: means over the steps; the first base of Ray's learner class."""

    def _judge(self, module: Any, batch: Any, make: Any, acts: Any, logp: Any) -> tuple[Any, Any]:  # noqa: ARG002
        with torch.no_grad():
            judge = make(module.forward_target(batch)[ray_versions.target_network_logits()])
            return judge, judge.logp(batch[Columns.ACTIONS])

    def _terms_of(self, module_id: str, config: Any, of: dict[str, Any]) -> dict[str, Any]:
        weight = self.entropy_coeff_schedulers_per_module[module_id].get_current_value()  # type: ignore[attr-defined]
        kl_weight = self.curr_kl_coeffs_per_module[module_id]  # type: ignore[attr-defined]
        trusted = (of["behaviour"] - of["judge"]).exp().clamp(0.0, 2.0)
        ratio = trusted * (of["logp"] - of["behaviour"]).exp()
        within = ratio.clamp(1 - config.clip_param, 1 + config.clip_param)
        policy_loss = -torch.minimum(of["gains"] * ratio, of["gains"] * within).mean()
        vf_loss, entropy, kl = 0.5 * of["errors"].mean(), of["entropy"].mean(), of["kl"].mean()
        loss = policy_loss + config.vf_loss_coeff * vf_loss - weight * entropy
        if config.use_kl_loss:
            loss = loss + kl_weight * kl
        told = {"policy_loss": policy_loss, "vf_loss": vf_loss, "entropy": entropy}
        return {"total_loss": loss, "mean_kl_loss": kl.detach(), **told}
