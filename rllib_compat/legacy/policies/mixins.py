"""Mixins of policies, and functions that set them up before the loss is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from ray.rllib.policy import torch_mixins
from ray.rllib.policy.sample_batch import SampleBatch
from ray.rllib.policy.torch_mixins import (
    EntropyCoeffSchedule,
    KLCoeffMixin,
    LearningRateSchedule,
)

from rllib_compat.ray_versions.types import Policy

__all__ = [
    "ComputeTDErrorMixin",
    "EntropyCoeffSchedule",
    "KLCoeffMixin",
    "LearningRateSchedule",
    "TargetNetworkMixin",
    "ValueNetworkMixin",
]


class ValueNetworkMixin(torch_mixins.ValueNetworkMixin):  # type: ignore[misc]  # Ray has no types
    """Ray's; until Ray 1.x it took the spaces, too: (obs_space, action_space, config)."""

    def __init__(self, *arguments: Any) -> None:
        torch_mixins.ValueNetworkMixin.__init__(self, arguments[-1])


class TargetNetworkMixin(torch_mixins.TargetNetworkMixin):  # type: ignore[misc]
    """Ray's, whose target starts as a copy; in some modules it took spaces and config."""

    def __init__(self: Any, *_: object) -> None:
        self.update_target(tau=1.0)


class ComputeTDErrorMixin:
    """Gives a policy `compute_td_error`, with which workers set the priorities of steps.

    Args:
        loss_fn: A loss that keeps `td_error` in `model.tower_stats`.
    """

    def __init__(self: Any, loss_fn: Callable[..., Any]) -> None:
        def compute_td_error(
            obs_t: Any,
            act_t: Any,
            rew_t: Any,
            obs_tp1: Any,
            done_mask: Any,
            importance_weights: Any,
        ) -> Any:
            steps = {"obs": obs_t, "actions": act_t, "rewards": rew_t, "new_obs": obs_tp1}
            steps |= {"terminateds": done_mask, "weights": importance_weights}
            loss_fn(self, self.model, None, self._lazy_tensor_dict(SampleBatch(steps)))
            return self.model.tower_stats["td_error"]

        self.compute_td_error = compute_td_error


#: A mixin → its arguments from a config.
_ARGUMENTS: Mapping[type, Callable[[Any], tuple[Any, ...]]] = {
    EntropyCoeffSchedule: lambda c: (c["entropy_coeff"], c.get("entropy_coeff_schedule")),
    KLCoeffMixin: lambda config: (config,),
    LearningRateSchedule: lambda config: (config["lr"], config.get("lr_schedule")),
    TargetNetworkMixin: lambda _: (),
    ValueNetworkMixin: lambda config: (config,),
}


def setup(*mixins: type) -> Callable[[Any, object, object, Any], None]:
    """A function of (policy, obs_space, action_space, config) that sets up mixins."""

    def setup_mixins(
        policy: Policy, obs_space: object, action_space: object, config: object
    ) -> None:
        for mixin in mixins:
            mixin.__init__(policy, *_ARGUMENTS[mixin](config))  # type: ignore[misc]

    return setup_mixins


def q_stats(policy: Policy, name: str) -> dict[str, Any]:
    """The mean, the greatest and the least value of critics in the last loss."""
    values = torch.stack(policy.get_tower_stats(name))
    return {"mean_q": values.mean(), "max_q": values.max(), "min_q": values.min()}


def tower_mean(policy: Policy, name: str) -> float:
    """The mean over GPUs of a statistic that a loss keeps in `model.tower_stats`."""
    found = [torch.as_tensor(value).detach() for value in policy.get_tower_stats(name)]
    return sum(map(float, found)) / len(found)


def compute_and_clip_gradients(
    policy: Policy, optimizer: object, loss: Any
) -> list[tuple[Any, Any]]:
    """A loss's gradients with their weights, clipped to the global norm `grad_clip`."""
    found = policy.model.trainable_variables  # an attribute of models that are no ModelV2
    weights = list(found() if callable(found) else found)
    gradients, most = torch.autograd.grad(loss, weights), policy.config["grad_clip"]
    if most is not None:
        factor = most / max(float(global_norm(gradients)), most)
        gradients = tuple(torch.nan_to_num(gradient * factor) for gradient in gradients)
    policy.grads = list(gradients)
    return list(zip(gradients, weights, strict=True))


def global_norm(gradients: Any) -> Any:
    """The norm of gradients as one vector."""
    lengths = [gradient.norm() for gradient in gradients if gradient is not None]
    return torch.linalg.vector_norm(torch.stack(lengths))


def grad_stats(policy: Policy, train_batch: object, grads: object) -> dict[str, Any]:
    """The norm of the gradients."""
    return {"grad_gnorm": global_norm(grads)}
