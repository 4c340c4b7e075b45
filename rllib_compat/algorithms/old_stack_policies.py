"""The policies of these algorithms for Ray's old API stack.

Only that stack runs a ModelV2, a policy of one's own, or an observation filter of one's own: a
config that has one of those is trained with these. What they compute is what the torch policies of
Ray 1.x computed (`agents/pg/pg_torch_policy.py`, `agents/a3c/a3c_torch_policy.py`).
"""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Any

import torch
from ray.rllib.evaluation.postprocessing import Postprocessing, compute_advantages
from ray.rllib.policy.sample_batch import SampleBatch
from ray.rllib.policy.torch_mixins import (
    EntropyCoeffSchedule,
    LearningRateSchedule,
    ValueNetworkMixin,
)
from ray.rllib.policy.torch_policy_v2 import TorchPolicyV2
from ray.rllib.utils.torch_utils import apply_grad_clipping, explained_variance, sequence_mask

from rllib_compat.ray_versions import old_policies

if TYPE_CHECKING:
    import gymnasium

    from rllib_compat.ray_versions.types import AlgorithmConfig


class _PolicyGradient(TorchPolicyV2):  # type: ignore[misc]  # Ray has no types
    """What these policies share: how they begin, clip and tell."""

    #: What `loss` leaves for the results.
    told: tuple[str, ...] = ()

    def __init__(
        self,
        observation_space: gymnasium.Space[Any],
        action_space: gymnasium.Space[Any],
        config: Any,
    ) -> None:
        super().__init__(
            observation_space,
            action_space,
            config,
            max_seq_len=config["model"]["max_seq_len"],
        )
        self._add_mixins(config)
        self._initialize_loss_from_dummy_batch()

    def _add_mixins(self, config: object) -> None:
        """Sets up what else a class inherits from."""

    def stats_fn(self, train_batch: object) -> dict[str, float]:  # noqa: ARG002
        """What of the last loss goes into the results."""
        return {
            name: float(torch.stack(self.get_tower_stats(name)).detach().mean())
            for name in self.told
        }

    def extra_grad_process(self, local_optimizer: object, loss: object) -> Any:
        """Clips gradients."""
        return apply_grad_clipping(self, local_optimizer, loss)


def _distributions(model: Any, dist_class: Any, batch: Any) -> Any:
    """The action distributions of now."""
    logits, _ = model(batch)
    return dist_class(logits, model)


class ActorCriticTerms:
    """The terms of an actor-critic's loss: sums over the steps (`A3CLoss` of Ray 0.x and 1.x).

    Args:
        action_dist: The distributions of now.
        actions: What was done.
        advantages: How much better each action was than expected.
        v_target: What the critic should have said.
        vf: What it says.
        valid_mask: Which steps count.
        vf_loss_coeff: The weight of the critic's loss.
        entropy_coeff: How much entropy is worth.
        use_critic: Whether there is a critic's loss.

    Attributes:
        pi_loss: Minus each action's log-probability times its advantage.
        vf_loss: Half the squares of the critic's errors.
        entropy: The distributions' entropy.
        total_loss: All of it, weighed.
    """

    def __init__(
        self,
        action_dist: Any,
        actions: object,
        advantages: torch.Tensor,
        v_target: torch.Tensor,
        vf: torch.Tensor,
        valid_mask: torch.Tensor,
        vf_loss_coeff: float = 0.5,
        entropy_coeff: object = 0.01,
        use_critic: bool = True,
    ) -> None:
        valid = valid_mask.bool()
        self.pi_loss = -(action_dist.logp(actions) * advantages)[valid].sum()
        self.vf_loss = torch.zeros(())
        if use_critic:
            self.vf_loss = 0.5 * (vf.reshape(-1) - v_target)[valid].pow(2.0).sum()
        self.entropy = action_dist.entropy()[valid].sum()
        self.total_loss: Any = (
            self.pi_loss + self.vf_loss * vf_loss_coeff - self.entropy * entropy_coeff
        )


class PGTorchPolicy(_PolicyGradient):
    """Learns from discounted returns alone."""

    told = ("policy_loss",)

    def postprocess_trajectory(
        self,
        sample_batch: object,
        other_agent_batches: object = None,  # noqa: ARG002
        episode: object = None,  # noqa: ARG002
    ) -> Any:
        """Adds each step's discounted return; nothing is expected after the last."""
        return compute_advantages(
            sample_batch, 0.0, self.config["gamma"], use_critic=False, use_gae=False
        )

    def loss(self, model: Any, dist_class: object, train_batch: Any) -> Any:
        """Minus the mean of each action's log-probability times its discounted return."""
        logp = _distributions(model, dist_class, train_batch).logp(train_batch[SampleBatch.ACTIONS])
        gains = logp * train_batch[Postprocessing.ADVANTAGES]
        model.tower_stats["policy_loss"] = loss = -gains.mean()
        return loss


class A2CTorchPolicy(
    ValueNetworkMixin,  # type: ignore[misc]
    LearningRateSchedule,  # type: ignore[misc]
    EntropyCoeffSchedule,  # type: ignore[misc]
    _PolicyGradient,
):
    """Learns from advantages over a critic. Its terms are sums over the steps, not means."""

    told = ("policy_loss", "vf_loss", "policy_entropy", "vf_explained_var")

    def __init__(
        self,
        observation_space: gymnasium.Space[Any],
        action_space: gymnasium.Space[Any],
        config: AlgorithmConfig,
    ) -> None:
        _PolicyGradient.__init__(self, observation_space, action_space, config)

    def _add_mixins(self, config: Any) -> None:
        ValueNetworkMixin.__init__(self, config)
        LearningRateSchedule.__init__(self, config["lr"], config.get("lr_schedule"))
        coefficient = config["entropy_coeff"]
        schedule = config.get("entropy_coeff_schedule")
        if isinstance(coefficient, list):
            coefficient, schedule = coefficient[0][1], coefficient
        EntropyCoeffSchedule.__init__(self, coefficient, schedule)

    def postprocess_trajectory(
        self,
        sample_batch: object,
        other_agent_batches: object = None,  # noqa: ARG002
        episode: object = None,  # noqa: ARG002
    ) -> Any:
        """Adds advantages; the critic says what follows a fragment's last step."""
        settings = {key: self.config[key] for key in ("gamma", "use_gae", "use_critic")}
        settings["lambda_"] = self.config["lambda"]
        return compute_advantages(
            sample_batch, old_policies.value_after(self, sample_batch), **settings
        )

    def loss(self, model: Any, dist_class: object, train_batch: MutableMapping[str, Any]) -> Any:
        """The sums of the policy's and the critic's losses, less that of the entropy."""
        distributions = _distributions(model, dist_class, train_batch)
        values = model.value_function()
        valid = torch.ones_like(values, dtype=torch.bool)
        if self.is_recurrent():
            lengths = train_batch[SampleBatch.SEQ_LENS]
            longest = len(values) // len(lengths)
            valid = sequence_mask(lengths, longest, time_major=model.is_time_major()).reshape(-1)
        targets = train_batch[Postprocessing.VALUE_TARGETS]
        terms = ActorCriticTerms(
            distributions,
            train_batch[SampleBatch.ACTIONS],
            train_batch[Postprocessing.ADVANTAGES],
            targets,
            values,
            valid,
            self.config["vf_loss_coeff"],
            self.entropy_coeff,
            self.config["use_critic"],
        )
        model.tower_stats |= {
            "policy_loss": terms.pi_loss,
            "vf_loss": terms.vf_loss,
            "policy_entropy": terms.entropy,
            "vf_explained_var": explained_variance(targets, values.reshape(-1)),
        }
        return terms.total_loss

    def extra_action_out(
        self,
        input_dict: object,  # noqa: ARG002
        state_batches: object,  # noqa: ARG002
        model: Any,
        action_dist: object,  # noqa: ARG002
    ) -> dict[str, Any]:
        """The values, which the advantages need."""
        return {SampleBatch.VF_PREDS: model.value_function()}

    def stats_fn(self, train_batch: object) -> dict[str, float]:
        """What of the last loss goes into the results, and where the schedules are."""
        told = super().stats_fn(train_batch)
        return {**told, "cur_lr": self.cur_lr, "entropy_coeff": float(self.entropy_coeff)}
