"""PPO as Ray 0.8 – 2.39 trained it (`rllib/agents/ppo`, later `algorithms/ppo`).

Today's makes other minibatches: the step that Ray adds to each chunk of an episode is one of their
rows, a pass begins where the last one ended, and all policies make as many as the one with the
most steps. Here each policy makes its own passes over its own steps, as the config's Ray did
(`LegacyTraining`).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
import tree
from ray.rllib.algorithms import ppo
from ray.rllib.core.columns import Columns
from ray.rllib.evaluation.postprocessing import Postprocessing

from rllib_compat.algorithms.advantages import TrainBatches
from rllib_compat.algorithms.legacy_training import LegacyTraining
from rllib_compat.algorithms.objectives import clipped_surrogate, explained_variance
from rllib_compat.ray_versions import configs, connectors, learners, training_steps

if TYPE_CHECKING:
    from rllib_compat.algorithms.base import Batch
    from rllib_compat.ray_versions.types import AlgorithmConfig

Array = np.ndarray[Any, np.dtype[Any]]

#: Columns with more bytes stay on the host: on a GPU, a batch of images took more than networks.
_LARGE = 2**24

#: What is logged of each minibatch, by the names of Ray's learner.
TERMS = ("total_loss", "policy_loss", "vf_loss", "vf_explained_var", "entropy", "mean_kl_loss")


class PPO(ppo.PPO):  # type: ignore[misc]  # Ray has no types
    """Ray's PPO, whose learner itself makes passes over a train batch: an `LegacyPPOLearner`."""

    def training_step(self) -> None:
        """Samples a train batch, learns from it, and sends the weights."""
        steps = self.config.learner_class.legacy.collected_steps
        if steps is None:
            episodes = training_steps.sample_episodes(self, self.config.total_train_batch_size)
        else:
            episodes = training_steps.sample_fragments(self, steps)
        if episodes:  # else every env runner has failed
            several = configs.is_multi_agent(self.config)
            by_agents = several and self.config.learner_class.legacy.schedules_count_agent_steps
            now = training_steps.agent_steps_sampled(self) if by_agents else None
            training_steps.update_learners(self, episodes, now)
            training_steps.send_new_weights(self)


class LegacyPPOLearner(learners.OptimizerStepLearner):
    """Makes the passes of an old PPO, with its loss; the first base of Ray's learner class.

    Attributes:
        legacy: Those of the Ray that the config was written for.
    """

    legacy: ClassVar[LegacyTraining]
    config: Any
    module: Any
    metrics: Any
    _learner_connector: Any

    def build(self) -> None:
        """Builds the learner, with the advantages of old policies in the place of today's."""
        super().build()
        #: Module → the terms of its loss in each minibatch of this update.
        self._terms: dict[str, list[Any]] = {}
        pipeline = self._learner_connector
        if pipeline is not None and self.config.add_default_connectors_to_learner_pipeline:
            connectors.make_tensors_on_host(pipeline)
            pipeline.remove("GeneralAdvantageEstimation")
            self._learner_connector = TrainBatches(pipeline, self.config)

    def _update(self, batch: Mapping[str, Any], **kwargs: object) -> Any:
        """Makes all passes over a train batch, for one policy after the other.

        What is large in a batch, such as images, goes to the device by minibatches.
        """
        outputs: dict[str, Any] = {}
        losses: dict[str, Any] = {}
        logged: dict[Any, Any] = {}
        device = learners.device_of(self)

        def unless_large(column: torch.Tensor) -> torch.Tensor:
            return column if column.nbytes > _LARGE else column.to(device)

        def rows(column: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
            # It takes rows of bytes in a tenth of the time that `column[at]` takes.
            found = column.index_select(0, at.to(column.device))
            return found.to(device, non_blocking=True)

        for module_id in batch:
            columns = dict(batch[module_id])
            real, lengths = real_rows(columns)
            config = self.config.get_config_for_module(module_id)
            prepare(columns, config)
            columns = tree.map_structure(unless_large, columns)
            size = config.minibatch_size or int(lengths.sum())
            for begin_of_pass, chosen in passes(lengths, size, config.num_epochs, self.legacy):
                if begin_of_pass and self.legacy.reports_last_epoch:
                    self._terms.pop(module_id, None)
                minibatch = tree.map_structure(partial(rows, at=real[chosen]), columns)
                found = super()._update({module_id: minibatch}, **kwargs)
                for whole, part in zip((outputs, losses, logged), found, strict=True):
                    whole.update(part)
        return outputs, losses, logged

    def compute_loss_for_module(
        self, *, module_id: str, config: AlgorithmConfig, batch: Batch, fwd_out: Batch
    ) -> Any:
        """The loss of a minibatch: what `ppo_surrogate_loss` computed."""
        module = self.module[module_id].unwrapped()
        real = batch.get(Columns.LOSS_MASK, ...)  # of sequences, whose rest is padding

        def mean(term: torch.Tensor) -> Any:
            return term[real].mean()

        logits, embeddings = fwd_out[Columns.ACTION_DIST_INPUTS], fwd_out.get(Columns.EMBEDDINGS)
        acts = module.get_train_action_dist_cls().from_logits(logits)
        acted = module.get_exploration_action_dist_cls().from_logits(
            batch[Columns.ACTION_DIST_INPUTS]
        )
        logp = acts.logp(batch[Columns.ACTIONS])
        ratio = torch.exp(logp - batch[Columns.ACTION_LOGP])
        gains = batch[Postprocessing.ADVANTAGES]
        policy_loss = -mean(clipped_surrogate(ratio, gains, config.clip_param))
        entropy = mean(acts.entropy())
        weight = self.entropy_coeff_schedulers_per_module[module_id].get_current_value()  # type: ignore[attr-defined]
        loss = policy_loss - weight * entropy
        vf_loss = explained = kl = torch.zeros_like(loss)
        if config.use_critic:
            said = module.compute_values(batch, embeddings)
            targets = batch[Postprocessing.VALUE_TARGETS]
            vf_loss = mean(self._critics_loss(said, targets, batch, config.vf_clip_param))
            explained = explained_variance(targets[real], said[real])
            loss = loss + config.vf_loss_coeff * vf_loss
        kl_weight = self.curr_kl_coeffs_per_module[module_id]  # type: ignore[attr-defined]
        if config.use_kl_loss and config.kl_coeff:
            kl = mean(acted.kl(acts))
            loss = loss + kl_weight * kl
        terms = (loss, policy_loss, vf_loss, explained, entropy, kl)
        self._terms.setdefault(module_id, []).append(torch.stack(terms).detach())
        return loss

    def _critics_loss(
        self, said: torch.Tensor, targets: torch.Tensor, batch: Mapping[str, Any], most: float
    ) -> Any:
        errors = (said - targets).square()
        if not self.legacy.clips_value_function:
            return errors.clamp(max=most)
        before = batch["vf_preds"]
        near = before + (said - before).clamp(-most, most)
        return torch.maximum(errors, (near - targets).square())

    def after_gradient_based_update(self, *, timesteps: object) -> None:
        """Logs the means over minibatches, from which KL coefficients and schedules continue."""
        for module_id, terms in self._terms.items():
            self.metrics.log_dict(_means(terms), key=module_id, window=1)
        super().after_gradient_based_update(timesteps=timesteps)  # type: ignore[misc]
        self._terms.clear()

    def take_terms(self, module_id: str) -> dict[str, float]:
        """The means over minibatches of a module, which the next update knows nothing of."""
        terms = self._terms.pop(module_id, None)
        return _means(terms) if terms else {}

    def _update_module_kl_coeff(self, *, module_id: str, **of: object) -> None:
        """Moves the KL coefficient of a policy that has learned, and of no other one."""
        if module_id in self._terms:
            super()._update_module_kl_coeff(module_id=module_id, **of)  # type: ignore[misc]


class SharingPPOLearner:
    """The first base of Ray's learner class where several learn, which makes Ray's minibatches.

    A short one may have no step but that which Ray adds to each chunk of an episode. Ray's loss is
    NaN there, and so are the gradients of all learners, which share their mean.
    """

    module: Any

    def build(self) -> None:
        """Builds the learner."""
        super().build()  # type: ignore[misc]  # of the real learner
        #: Module → its loss in the last minibatch with a step, which results report.
        self._last_losses: dict[str, torch.Tensor] = {}

    def _update(self, batch: Mapping[str, Any], **kwargs: object) -> Any:
        """One update, whose losses are those of the last minibatches with a step."""
        outputs, losses, logged = super()._update(batch, **kwargs)  # type: ignore[misc]
        return outputs, {of: self._last_losses.get(of, loss) for of, loss in losses.items()}, logged

    def compute_loss_for_module(
        self, *, module_id: str, config: AlgorithmConfig, batch: Batch, fwd_out: Batch
    ) -> Any:
        """The loss of a minibatch: Ray's, or 0 of all that it is computed from."""
        if Columns.LOSS_MASK not in batch or batch[Columns.LOSS_MASK].any():
            loss = super().compute_loss_for_module(  # type: ignore[misc]
                module_id=module_id, config=config, batch=batch, fwd_out=fwd_out
            )
            self._last_losses[module_id] = loss.detach()
            return loss
        module = self.module[module_id].unwrapped()
        values = module.compute_values(batch, embeddings=fwd_out.get(Columns.EMBEDDINGS))
        return 0.0 * (fwd_out[Columns.ACTION_DIST_INPUTS].sum() + values.sum())


def _means(terms: list[torch.Tensor]) -> dict[str, float]:
    """The means of a loss's terms, by their names."""
    return dict(zip(TERMS, torch.stack(terms).nanmean(dim=0).tolist(), strict=True))


def real_rows(columns: dict[str, Any]) -> tuple[torch.Tensor, Array]:
    """Which rows of a learner's batch were sampled: a step is added to each chunk of an episode.

    A row of a learner's batch is a step, or a padded sequence of steps. What is no tensor is taken
    out of the columns, and a mask of these rows is in them afterwards.

    Returns:
        The places of those rows, and how many steps each has.
    """
    columns.pop(Columns.INFOS, None)  # no tensors
    if Columns.LOSS_MASK not in columns:  # the pipeline is the user's own
        columns[Columns.LOSS_MASK] = torch.ones_like(columns[Columns.REWARDS], dtype=torch.bool)
    mask = columns[Columns.LOSS_MASK]
    lengths = mask.reshape(len(mask), -1).sum(dim=1)
    (real,) = lengths.nonzero(as_tuple=True)
    return real, lengths[real].cpu().numpy()


def prepare(columns: dict[str, Any], config: AlgorithmConfig) -> None:
    """Keeps what the critic said, and standardizes advantages over the whole batch, in place."""
    gains, mask = columns[Postprocessing.ADVANTAGES], columns[Columns.LOSS_MASK]
    if config.use_critic:
        columns["vf_preds"] = columns[Postprocessing.VALUE_TARGETS] - gains
    deviation, center = torch.std_mean(gains[mask], correction=0)
    columns[Postprocessing.ADVANTAGES] = (gains - center) / deviation.clamp(min=1e-4)
    if mask.dim() == 1:  # each row is a step
        del columns[Columns.LOSS_MASK]


def passes(
    lengths: Array, size: int, count: int, legacy: LegacyTraining
) -> Iterator[tuple[bool, Array]]:
    """The minibatches of all passes over a train batch.

    Args:
        lengths: How many steps each row of the batch has: one, or as many as its sequence.
        size: How many steps a minibatch has. Of sequences it has those in which these steps begin.
        count: How many passes.
        legacy: What old Rays did differently.

    Yields:
        Whether a pass begins with this minibatch, and its rows.
    """
    rows, of_sequences = np.arange(len(lengths)), bool((lengths > 1).any())
    if legacy.shuffle == "once":
        rows = np.random.permutation(rows)
    for _ in range(count):
        if legacy.shuffle == "each epoch" and not of_sequences:
            rows = np.random.permutation(rows)
        total = int(lengths.sum())
        found = max(1, -(-total // size) if legacy.keeps_partial_minibatch else total // size)
        ends = np.searchsorted(lengths[rows].cumsum(), np.arange(found + 1) * size, side="right")
        minibatches = [rows[ends[n] : ends[n + 1]] for n in _order(found, legacy)]
        # Where a sequence is longer than a minibatch, some have none; where all are, it is one.
        for place, chosen in enumerate([m for m in minibatches if len(m)] or [rows]):
            yield place == 0, chosen


def _order(count: int, legacy: LegacyTraining) -> list[int]:
    """The order of a pass's minibatches, drawn as each Ray drew it."""
    numbers = list(range(count))
    if legacy.keeps_partial_minibatch:
        random.shuffle(numbers)
    else:
        np.random.shuffle(numbers)
    return numbers
