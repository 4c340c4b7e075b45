"""The policies of these algorithms for Ray's old API stack.

Only that stack runs a ModelV2, a custom policy, or a custom observation filter: a
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


def _with_schedules(config: dict[str, Any]) -> dict[str, Any]:
    """A config as the old API stack has it: schedules beside the values that they begin with."""
    separate = dict(config)
    for name in ("lr", "entropy_coeff"):
        if isinstance(schedule := separate.get(name), list):
            first = separate.get(f"initial_{name}")
            first = schedule[0][1] if first is None else first
            separate |= {name: first, f"{name}_schedule": schedule}
    return separate


class _PolicyGradient(LearningRateSchedule, TorchPolicyV2):  # type: ignore[misc]  # Ray has no types
    """What these policies share: how they begin, clip and log."""

    #: What `loss` leaves for the results.
    reported: tuple[str, ...] = ()

    def __init__(
        self,
        observation_space: gymnasium.Space[Any],
        action_space: gymnasium.Space[Any],
        config: dict[str, Any],
    ) -> None:
        config = _with_schedules(config)
        TorchPolicyV2.__init__(
            self,
            observation_space,
            action_space,
            config,
            max_seq_len=config["model"]["max_seq_len"],
        )
        self._add_mixins(config)
        self._initialize_loss_from_dummy_batch()

    def _add_mixins(self, config: dict[str, Any]) -> None:
        """Sets up what else a class inherits from."""
        LearningRateSchedule.__init__(self, config["lr"], config.get("lr_schedule"))

    def stats_fn(self, train_batch: object) -> dict[str, float]:  # noqa: ARG002
        """What of the last loss goes into the results."""
        return {
            name: float(torch.stack(self.get_tower_stats(name)).detach().mean())
            for name in self.reported
        }

    def extra_grad_process(self, local_optimizer: object, loss: object) -> Any:
        """Clips gradients."""
        return apply_grad_clipping(self, local_optimizer, loss)


def _gains(model: Any, dist_class: Any, batch: Any) -> tuple[Any, Any]:
    """The distributions of now, and what raising each action's probability would gain."""
    logits, _ = model(batch)
    distributions = dist_class(logits, model)
    logp = distributions.logp(batch[SampleBatch.ACTIONS])
    return distributions, logp * batch[Postprocessing.ADVANTAGES]


class PGTorchPolicy(_PolicyGradient):
    """Learns from discounted returns alone."""

    reported = ("policy_loss",)

    def postprocess_trajectory(
        self,
        sample_batch: object,
        other_agent_batches: object = None,  # noqa: ARG002
        episode: object = None,  # noqa: ARG002
    ) -> Any:
        """Adds each step's discounted return; nothing is expected after the last."""
        return old_policies.with_returns(self, sample_batch, 0.0)

    def loss(self, model: Any, dist_class: object, train_batch: object) -> Any:
        """Minus the mean of each action's log-probability times its discounted return."""
        _, gains = _gains(model, dist_class, train_batch)
        model.tower_stats["policy_loss"] = loss = -gains.mean()
        return loss


class A2CTorchPolicy(ValueNetworkMixin, EntropyCoeffSchedule, _PolicyGradient):  # type: ignore[misc]
    """Learns from advantages over a critic. Its terms are sums over the steps, not means."""

    reported = ("policy_loss", "vf_loss", "policy_entropy", "vf_explained_var")

    def __init__(
        self,
        observation_space: gymnasium.Space[Any],
        action_space: gymnasium.Space[Any],
        config: dict[str, Any],
    ) -> None:
        _PolicyGradient.__init__(self, observation_space, action_space, config)

    def _add_mixins(self, config: dict[str, Any]) -> None:
        super()._add_mixins(config)
        ValueNetworkMixin.__init__(self, config)
        EntropyCoeffSchedule.__init__(
            self, config["entropy_coeff"], config.get("entropy_coeff_schedule")
        )

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
        distributions, gains = _gains(model, dist_class, train_batch)
        values = model.value_function()
        valid = torch.ones_like(values, dtype=torch.bool)
        if self.is_recurrent():
            lengths = train_batch[SampleBatch.SEQ_LENS]
            longest = len(values) // len(lengths)
            valid = sequence_mask(lengths, longest, time_major=model.is_time_major()).reshape(-1)
        policy_loss = -gains[valid].sum()
        value_loss: Any = torch.zeros(())
        if self.config["use_critic"]:
            errors = values.reshape(-1) - train_batch[Postprocessing.VALUE_TARGETS]
            value_loss = 0.5 * errors[valid].pow(2.0).sum()
        entropy = distributions.entropy()[valid].sum()
        model.tower_stats |= {
            "policy_loss": policy_loss,
            "vf_loss": value_loss,
            "policy_entropy": entropy,
            "vf_explained_var": explained_variance(
                train_batch[Postprocessing.VALUE_TARGETS], values.reshape(-1)
            ),
        }
        weight = self.config["vf_loss_coeff"]
        return policy_loss + weight * value_loss - self.entropy_coeff * entropy

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
        reported = super().stats_fn(train_batch)
        return {**reported, "cur_lr": self.cur_lr, "entropy_coeff": float(self.entropy_coeff)}
