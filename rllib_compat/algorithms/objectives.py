"""Terms that several losses have: functions of tensors alone.

An algorithm's own loss is in its file: its learner takes tensors from modules and
batches, and a function of these computes the terms.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch.nn import functional


def td_targets(
    rewards: torch.Tensor,
    terminateds: torch.Tensor,
    next_values: torch.Tensor,
    discounts: torch.Tensor | float,
) -> torch.Tensor:
    """What critics should have said: rewards, and what is expected after them, discounted.

    Args:
        rewards: The rewards, which may be sums over several steps.
        terminateds: Whether the episode has ended by then: nothing is expected.
        next_values: What is expected after the rewards.
        discounts: The weight of that.
    """
    return rewards + discounts * (1.0 - terminateds.float()) * next_values


def least(values: Iterable[torch.Tensor]) -> torch.Tensor:
    """The smallest of what several critics say, element by element."""
    return torch.stack(list(values)).min(dim=0).values


def huber(errors: torch.Tensor, threshold: float = 1.0) -> torch.Tensor:
    """Huber's loss of each error: half its square, and linear beyond the threshold."""
    zeros = torch.zeros_like(errors)
    return functional.huber_loss(errors, zeros, reduction="none", delta=threshold)


def summed_actor_critic_terms(
    logp: torch.Tensor, gains: torch.Tensor, errors: torch.Tensor, entropies: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The sums over all steps that A3C and IMPALA learn from, and not the means.

    Args:
        logp: The logarithm of how likely each action is.
        gains: The advantage of each action.
        errors: What the critic is wrong by.
        entropies: The entropy of the policy at each step.

    Returns:
        The losses of the policy and of the critic, and the entropy.
    """
    return -(logp * gains).sum(), 0.5 * errors.pow(2.0).sum(), entropies.sum()


def conservative_gap(
    values: torch.Tensor, others: torch.Tensor, temperature: float
) -> torch.Tensor:
    """What CQL makes small: by how much other actions look better than those that were taken.

    Args:
        values: What a critic says of the actions that were taken, `[B]`.
        others: What it says of others, less the logarithm of how likely these were, `[B, n]`.
        temperature: How soft the maximum over them is.
    """
    soft = temperature * (others / temperature).logsumexp(dim=1)
    return soft.mean() - values.mean()


def clipped_surrogate(ratios: torch.Tensor, advantages: torch.Tensor, clip: float) -> torch.Tensor:
    """PPO's gain of each action: no more than that of a ratio within `1 - clip` and `1 + clip`."""
    return torch.minimum(advantages * ratios, advantages * ratios.clamp(1 - clip, 1 + clip))


def explained_variance(targets: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """How much of the targets' variance a critic explains: 1 for all of it, and at least -1."""
    return (1 - (targets - values).var() / targets.var()).clamp(min=-1.0)
