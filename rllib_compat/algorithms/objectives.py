"""Terms that several losses have: functions of tensors alone.

An algorithm's own loss is in its file: its learner takes tensors from modules and
batches, and a function of these computes the terms.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch


class Choices:
    """One of `n` choices by each row of logits `[…, n]`.

    Ray's distribution of them takes twice as long to say how likely they are.
    """

    def __init__(self, logits: torch.Tensor) -> None:
        self._logps = logits.log_softmax(-1)

    def logp(self, choices: torch.Tensor) -> torch.Tensor:
        """The logarithm of the probability of a choice of each row `[…]`."""
        return self._logps.gather(-1, choices.long().unsqueeze(-1)).squeeze(-1)

    def entropy(self) -> torch.Tensor:
        """The entropy of each row `[…]`; what can't be chosen adds nothing."""
        least = torch.finfo(self._logps.dtype).min
        return -(self._logps.exp() * self._logps.clamp(min=least)).sum(-1)


def td_targets(
    rewards: torch.Tensor,
    terminateds: torch.Tensor,
    next_values: torch.Tensor,
    discounts: torch.Tensor | float,
) -> torch.Tensor:
    """What critics should have said: rewards, and what is expected after them, discounted."""
    return rewards + discounts * torch.where(terminateds.bool(), 0.0, next_values)


def least(values: Iterable[torch.Tensor]) -> torch.Tensor:
    """The smallest of what several critics say, element by element."""
    return torch.stack(list(values)).min(dim=0).values


def huber(errors: torch.Tensor, threshold: float = 1.0) -> torch.Tensor:
    """Huber's loss of each error: half its square, and linear beyond the threshold.

    `torch.nn.functional` takes as long to expand both arguments to one shape as to compute it.
    """
    each = 0
    losses: torch.Tensor = torch.ops.aten.huber_loss(errors, errors.new_zeros(()), each, threshold)
    return losses


def summed_actor_critic_terms(
    logp: torch.Tensor, gains: torch.Tensor, errors: torch.Tensor, entropies: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The losses of policy and critic, and the entropy, summed over all steps: A3C's, IMPALA's."""
    return -(logp * gains).sum(), 0.5 * errors.pow(2.0).sum(), entropies.sum()


def conservative_gap(
    values: torch.Tensor, others: torch.Tensor, temperature: float
) -> torch.Tensor:
    """What CQL makes small: by how much other actions look better than those that were taken.

    The values of others, `[B, n]`, are less the logarithm of how likely these were.
    """
    soft = temperature * (others / temperature).logsumexp(dim=1)
    return soft.mean() - values.mean()


def clipped_surrogate(ratios: torch.Tensor, advantages: torch.Tensor, clip: float) -> torch.Tensor:
    """PPO's gain of each action: no more than that of a ratio within `1 - clip` and `1 + clip`."""
    return torch.minimum(advantages * ratios, advantages * ratios.clamp(1 - clip, 1 + clip))


@torch.no_grad()  # type: ignore[untyped-decorator,unused-ignore]
def norm_of(module: torch.nn.Module) -> torch.Tensor:
    """The norm of all weights of a module."""
    norms = [weight.norm() for weight in module.parameters()]
    whole: torch.Tensor = torch.stack(norms).norm()
    return whole


def explained_variance(targets: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """How much of the targets' variance a critic explains: 1 for all of it, and at least -1."""
    return (1 - (targets - values).var() / targets.var()).clamp(min=-1.0)
