"""What IMPALA and APPO of the old Rays learned of a train batch (`agents/impala`, `appo.py`).

Today's learners compute other numbers: IMPALA's terms are means there and were sums, which matters
where gradients are clipped (`grad_clip`, 40 by default) and for RMSprop's large epsilon; V-trace of
today looks at one step more of each fragment, the last one, which the old Rays took for the value
that is expected after those before it; and APPO has V-trace alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
import tree
from ray.rllib.core.columns import Columns
from ray.rllib.evaluation.postprocessing import Postprocessing

from rllib_compat.algorithms.advantages import Advantages
from rllib_compat.algorithms.legacy_training import LegacyTraining
from rllib_compat.algorithms.objectives import (
    clipped_surrogate,
    explained_variance,
    norm_of,
    summed_actor_critic_terms,
)
from rllib_compat.algorithms.ppo import real_rows
from rllib_compat.ray_versions import configs, connectors, modules

if TYPE_CHECKING:
    from rllib_compat.algorithms.base import Batch
    from rllib_compat.ray_versions.types import AlgorithmConfig, RLModule

Array = np.ndarray[Any, np.dtype[Any]]


def vtrace(
    rewards: Array,
    values: Array,
    after: float,
    ratios: Array,
    discounts: Array,
    most: tuple[float, float],
) -> tuple[Array, Array]:
    """V-trace of steps that follow one another.

    Args:
        rewards: The rewards, one a step.
        values: What was expected before each step.
        after: What is expected after the last one.
        ratios: How much likelier the policy that learns takes each action than that which took it.
        discounts: The weight of what follows each step; 0 where its episode has ended.
        most: The ratios count no more than that: for the values, and for the policy.

    Returns:
        What the critic should say before each step, and the advantages of the actions.
    """
    following = np.append(values[1:], after)
    surprises = np.minimum(ratios, most[0]) * (rewards + discounts * following - values)
    traces, ahead = np.minimum(ratios, 1.0), 0.0
    targets = np.empty(len(rewards))
    for step in reversed(range(len(rewards))):
        ahead = surprises[step] + discounts[step] * traces[step] * ahead
        targets[step] = values[step] + ahead
    gains = rewards + discounts * np.append(targets[1:], after) - values
    return targets, np.minimum(ratios, most[1]) * gains


class LegacyVTraceLearner:
    """Finds the steps that V-trace looks at; what is common to both learners.

    The last step of a fragment is not learned from: it only says what is expected after the one
    before. Without `vtrace_drop_last_ts` it is learned from, too. Of a recurrent policy each
    sequence is a fragment, and what pads it is looked at, as if the episode went on.
    """

    legacy: ClassVar[LegacyTraining]
    config: Any
    module: Any
    metrics: Any
    _learner_connector: Any

    def build(self) -> None:
        """Builds the learner, whose batches wait on the host until a thread takes them to a GPU.

        Ray makes them there, where as many as 80 wait for that thread.
        """
        super().build()  # type: ignore[misc]  # of the real learner
        if self._traces() and self._learner_connector is not None:
            connectors.make_tensors_on_host(self._learner_connector)

    def _update(self, batch: Mapping[str, Any], **kwargs: object) -> Any:
        """Updates once, from sequences that are padded as the old ones were."""
        stateful = {name: self.module[name].unwrapped().is_stateful() for name in batch}
        padded = {n: sequences(dict(batch[n])) if stateful[n] else batch[n] for n in batch}
        return super()._update(padded, **kwargs)  # type: ignore[misc]  # of the real learner

    def compute_loss_for_module(
        self, *, module_id: str, config: AlgorithmConfig, batch: Batch, fwd_out: Batch
    ) -> Any:
        """The loss over the steps that were learned from."""
        module = self.module[module_id].unwrapped()
        make = module.get_train_action_dist_cls().from_logits
        acts = make(fwd_out[Columns.ACTION_DIST_INPUTS])
        said = module.compute_values(batch, fwd_out.get(Columns.EMBEDDINGS))
        logp = acts.logp(batch[Columns.ACTIONS])
        behaviour = self._behaviour(make, batch)
        judge, judges_logp = self._judge(module, batch, make, acts, logp)
        if self._traces():
            ratios = (judges_logp - behaviour).exp()
            rows, targets, gains = self._compute_vtrace(config, batch, said, ratios)
        else:
            rows = batch[Columns.LOSS_MASK].flatten().nonzero(as_tuple=True)[0]
            columns = (Postprocessing.VALUE_TARGETS, Postprocessing.ADVANTAGES)
            targets, gains = (batch[name].flatten()[rows] for name in columns)
        chosen = said.flatten()[rows]
        terms = self._terms_of(
            module_id,
            config,
            {
                "logp": logp.flatten()[rows],
                "behaviour": behaviour.flatten()[rows],
                "judge": judges_logp.flatten()[rows],
                "entropy": acts.entropy().flatten()[rows],
                "errors": chosen - targets,
                "gains": gains,
                "kl": None if judge is acts else judge.kl(acts).flatten()[rows],
            },
        )
        terms["vf_explained_var"] = explained_variance(targets, chosen)
        terms["var_gnorm"] = norm_of(module)
        self.metrics.log_dict(terms, key=module_id, window=1)
        return terms.pop("total_loss")

    def _traces(self) -> bool:
        """Whether advantages are those of V-trace."""
        return True

    def _behaviour(self, make: object, batch: Mapping[str, Any]) -> Any:  # noqa: ARG002
        """The log-probabilities of the actions, of the policy that took them."""
        return batch[Columns.ACTION_LOGP]

    def _judge(
        self,
        module: RLModule,  # noqa: ARG002
        batch: Mapping[str, Any],  # noqa: ARG002
        make: object,  # noqa: ARG002
        acts: object,
        logp: torch.Tensor,
    ) -> tuple[Any, Any]:
        """The policy whose ratios count, and its log-probabilities of the actions."""
        return acts, logp.detach()

    def _terms_of(
        self, module_id: str, config: AlgorithmConfig, of: dict[str, Any]
    ) -> dict[str, Any]:
        """The terms of the loss, with the `total_loss`."""
        raise NotImplementedError

    def _compute_vtrace(
        self, config: AlgorithmConfig, batch: Mapping[str, Any], said: Any, ratios: Any
    ) -> tuple[Any, Any, Any]:
        columns = (batch[Columns.REWARDS], said, ratios, batch[Columns.TERMINATEDS])
        rewards, values, weights, ended = (
            column.detach().cpu().double().numpy().ravel() for column in columns
        )
        mask = batch[Columns.LOSS_MASK].cpu().numpy()
        most = (config.vtrace_clip_rho_threshold, config.vtrace_clip_pg_rho_threshold)
        rows, targets, gains = [], [], []
        for steps, is_whole in self._fragments(mask, ended, config):
            learned = steps[:-1] if is_whole and self.legacy.vtrace_drops_last_step else steps
            discounts = config.gamma * (1.0 - ended[learned])
            of_steps = (rewards[learned], values[learned], float(values[steps[-1]]))
            found = vtrace(*of_steps, weights[learned], discounts, most)
            real = mask.ravel()[learned]
            rows.append(learned[real])
            targets.append(found[0][real])
            gains.append(found[1][real])
        tensors = (torch.as_tensor(np.concatenate(c), device=said.device) for c in (targets, gains))
        goals, advantages = (tensor.to(said.dtype) for tensor in tensors)
        return torch.as_tensor(np.concatenate(rows), device=said.device), goals, advantages

    def _fragments(
        self, mask: Array, ended: Array, config: AlgorithmConfig
    ) -> Iterator[tuple[Array, bool]]:
        if mask.ndim > 1:  # a row is a sequence
            yield from ((steps, True) for steps in np.split(np.arange(mask.size), len(mask)))
            return
        length = config.get_rollout_fragment_length()
        if mask.all():  # a worker's batch, where no step was added: one fragment after the other
            cuts = range(length, mask.size, length)
            yield from ((steps, True) for steps in np.split(np.arange(mask.size), cuts))
            return
        alone = config.num_envs_per_env_runner == 1 and not configs.is_multi_agent(self.config)
        yield from fragments(mask, ended, length if alone else 0)


def sequences(columns: dict[str, Any]) -> dict[str, Any]:
    """Sequences of steps that were sampled, as long as the longest, and padded with zeros."""
    real, lengths = real_rows(columns)
    rows = tree.map_structure(lambda column: column[real], columns)
    mask, longest = rows[Columns.LOSS_MASK], int(lengths.max())
    # What a sequence has once; lengths come with the advantages of learners without V-trace.
    once = {n: rows.pop(n) for n in (Columns.STATE_IN, Columns.SEQ_LENS) if n in rows}

    def pad(column: torch.Tensor) -> Any:
        real = mask.reshape(*mask.shape, *[1] * (column.dim() - 2))
        return torch.where(real, column, torch.zeros_like(column))[:, :longest]

    return {**tree.map_structure(pad, rows), **once}


def fragments(mask: Array, ended: Array, length: int) -> Iterator[tuple[Array, bool]]:
    """The steps of each fragment of a batch.

    Args:
        mask: Which steps were sampled; after those of each chunk of an episode there is one more.
        ended: Whether its episode ended with a step.
        length: How many steps a fragment has, over the ends of episodes; 0: unknown, as
            those of several environments come. Then each chunk is one by itself.

    Yields:
        The places of its steps, and whether the last is known to be a fragment's last.
    """
    steps: list[int] = []
    for begin, end in chunks(mask):
        steps.extend(range(begin, end))
        over = bool(ended[end - 1])
        if over and len(steps) < length:
            continue  # the next episode continues in it
        yield np.array(steps), not over or bool(length)
        steps = []
    if steps:
        yield np.array(steps), False


def chunks(mask: Array) -> Iterator[tuple[int, int]]:
    """Where chunks begin and end in a batch; after each there is the step that Ray has added."""
    begin = 0
    for end in np.flatnonzero(~mask):
        if end > begin:
            yield begin, int(end)
        begin = int(end) + 1


class LegacyIMPALALearner(LegacyVTraceLearner):
    """Computes IMPALA's loss: sums over the steps; the first base of Ray's learner class."""

    def _terms_of(
        self, module_id: str, config: AlgorithmConfig, of: dict[str, Any]
    ) -> dict[str, Any]:
        weight = self.entropy_coeff_schedulers_per_module[module_id].get_current_value()  # type: ignore[attr-defined]
        names = ("logp", "gains", "errors", "entropy")
        pi_loss, vf_loss, entropy = summed_actor_critic_terms(*(of[name] for name in names))
        loss = pi_loss + config.vf_loss_coeff * vf_loss - weight * entropy
        reported = entropy if self.legacy.reports_summed_entropy else of["entropy"].mean()
        return {"total_loss": loss, "pi_loss": pi_loss, "vf_loss": vf_loss, "entropy": reported}


class LegacyAPPOLearner(LegacyVTraceLearner):
    """Computes APPO's loss: means over the steps; the first base of Ray's learner class.

    With `vtrace: False` it is that of PPO, without what PPO does to advantages and to the critic.
    """

    def _traces(self) -> bool:
        return self.legacy.vtrace

    def build(self) -> None:
        """Builds the learner, with the advantages of old policies where V-trace finds none."""
        super().build()
        if not self._traces() and self._learner_connector is not None:
            self._learner_connector.append(Advantages(self.config))

    def _behaviour(self, make: Any, batch: Mapping[str, Any]) -> Any:
        behaviour = make(batch[Columns.ACTION_DIST_INPUTS])
        return behaviour.logp(batch[Columns.ACTIONS])

    def _judge(
        self,
        module: Any,
        batch: Mapping[str, Any],
        make: Any,
        acts: object,  # noqa: ARG002
        logp: object,  # noqa: ARG002
    ) -> tuple[Any, Any]:
        logits = batch[Columns.ACTION_DIST_INPUTS]
        if self._traces():
            with torch.no_grad():
                logits = module.forward_target(batch)[modules.target_network_logits()]
        judge = make(logits)
        return judge, judge.logp(batch[Columns.ACTIONS])

    def _terms_of(
        self, module_id: str, config: AlgorithmConfig, of: dict[str, Any]
    ) -> dict[str, Any]:
        weight = self.entropy_coeff_schedulers_per_module[module_id].get_current_value()  # type: ignore[attr-defined]
        kl_weight = self.curr_kl_coeffs_per_module[module_id]  # type: ignore[attr-defined]
        trust = trust_in_actions(of["behaviour"], of["judge"])
        ratios = trust * (of["logp"] - of["behaviour"]).exp()
        policy_loss = -clipped_surrogate(ratios, of["gains"], config.clip_param).mean()
        vf_loss = 0.5 * of["errors"].square().mean()
        entropy, kl = of["entropy"].mean(), of["kl"].mean()
        loss = policy_loss + config.vf_loss_coeff * vf_loss - weight * entropy
        if config.use_kl_loss:
            loss = loss + kl_weight * kl
        logged = {"policy_loss": policy_loss, "vf_loss": vf_loss, "entropy": entropy}
        if self._traces():
            logged |= {"mean_IS": trust.mean(), "var_IS": trust.var()}
        return {"total_loss": loss, "mean_kl_loss": kl.detach(), **logged}


def trust_in_actions(behaviour: torch.Tensor, judge: torch.Tensor) -> torch.Tensor:
    """How much actions count in APPO: more where the target policy, the `judge`, took others."""
    return (behaviour - judge).exp().clamp(0.0, 2.0)
