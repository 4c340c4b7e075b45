"""R2D2: Q-learning with recurrent networks (`agents/dqn/r2d2` of Ray 1.4 – 2.0, `r2d2` until 2.10).

Kapturowski et al., "Recurrent experience replay in distributed reinforcement learning" (2019).
Sequences are replayed with the states that they begin with; targets are rescaled.
"""

from __future__ import annotations

from typing import Any

import torch
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.core.columns import Columns

from rllib_compat.algorithms.base import Batch, Loss, register
from rllib_compat.algorithms.objectives import huber
from rllib_compat.algorithms.replay import WEIGHTS
from rllib_compat.algorithms.sequence_replay import (
    SequenceLearner,
    SequenceReplayAlgorithm,
    SequenceReplayConfig,
)
from rllib_compat.networks.modules.q import QF_PREDS
from rllib_compat.networks.modules.r2d2 import TARGETS, R2D2Module


class R2D2(SequenceReplayAlgorithm):
    """Deep Q-learning from sequences, with rescaled targets."""


class R2D2Config(SequenceReplayConfig):
    """The config of R2D2.

    Its module is recurrent: `rl_module(model_config={"use_lstm": True})`, or one of your own whose
    `_forward_train` gives what that of `rllib_compat.modules.R2D2Module` gives. `max_seq_len` of
    the model config says from how many steps a sequence is learned; the burn-in comes before them.

    With an `n_step` above 1 the value of the *next* step is added to the summed rewards, discounted
    by as many steps, as RLlib's R2D2 did.
    """

    default_module_class = R2D2Module
    module_settings = {
        "hiddens": "The sizes of the hidden layers of each stream; none: there are no streams.",
        "dueling": "Whether advantages and the state's value are streams of their own.",
        "double_q": "Whether the network says which action comes next, and the target only what "
        "it is worth.",
        "epsilon": "How probably it acts at random: a number, or a schedule `[[step, epsilon], "
        "…]`.",
    }
    settings = {
        "use_h_function": "Whether targets are rescaled: the network learns `h(value)`, where "
        "`h(x) = sign(x) (sqrt(|x| + 1) - 1) + h_function_epsilon * x`.",
        "h_function_epsilon": "How much of the value itself is in it.",
        "adam_epsilon": "The epsilon of Adam.",
    }
    least = {**SequenceReplayConfig.least, "h_function_epsilon": 0}
    schedules = {"epsilon": "epsilon"}

    def __init__(self, algo_class: type | None = None) -> None:
        super().__init__(algo_class=algo_class)
        greedily = AlgorithmConfig.overrides(explore=False)
        self.evaluation(evaluation_config=greedily)


class R2D2TorchLearner(SequenceLearner):
    """Computes the loss: what `r2d2_loss` of the torch policy computed."""

    def configure_optimizers_for_module(
        self, module_id: str, config: AlgorithmConfig | None = None
    ) -> None:
        """Makes one Adam."""
        config = self.config.get_config_for_module(module_id)
        parameters = self.get_parameters(self.module[module_id])
        made = torch.optim.Adam(parameters, eps=config.adam_epsilon)
        self.register_optimizer(
            module_id=module_id, optimizer=made, params=parameters, lr_or_lr_schedule=config.lr
        )

    def module_loss(
        self, module_id: str, config: AlgorithmConfig, batch: Batch, out: Batch
    ) -> Loss:
        """The mean Huber loss of all steps that are learned from, weighted by importance."""
        values, targets = out[QF_PREDS], out[TARGETS]
        taken = values.gather(-1, batch[Columns.ACTIONS].long().unsqueeze(-1)).squeeze(-1)
        # What follows the last row of a sequence is not known: nothing is learned there.
        learned = batch[Columns.LOSS_MASK][:, :-1]
        taken, count = taken[:, :-1], learned.sum()
        goals = r2d2_targets(
            values,
            targets,
            batch[Columns.REWARDS],
            batch[Columns.TERMINATEDS],
            config.gamma**config.n_step,
            double_q=config.double_q,
            h_epsilon=config.h_function_epsilon if config.use_h_function else None,
        )
        errors = torch.where(learned, taken - goals, 0.0)
        loss = (batch[WEIGHTS][:, :-1] * huber(errors)).sum() / count
        self.sequence_errors[module_id] = errors.detach().mean(-1).cpu().numpy()
        return loss, {
            "total_loss": loss,
            "mean_q": taken[learned].mean(),
            "min_q": taken.min(),
            "max_q": taken.max(),
            "mean_td_error": errors.sum() / count,
        }


@torch.no_grad()  # type: ignore[untyped-decorator,unused-ignore]
def r2d2_targets(
    values: torch.Tensor,
    targets: torch.Tensor,
    rewards: torch.Tensor,
    terminateds: torch.Tensor,
    discount: float,
    *,
    double_q: bool,
    h_epsilon: float | None,
) -> torch.Tensor:
    """What the network should have said in each row but the last, `[B, rows - 1]`.

    With `double_q` the network says which action comes next. Targets are rescaled by the h-function
    of `h_epsilon`, if there is one.
    """
    best = (values if double_q else targets).argmax(-1, keepdim=True)
    following = targets.gather(-1, best).squeeze(-1)[:, 1:]
    following = torch.where(terminateds[:, :-1], 0.0, following)
    if h_epsilon is None:
        return rewards[:, :-1] + discount * following
    return rescale(rewards[:, :-1] + discount * original(following, h_epsilon), h_epsilon)


def rescale(value: torch.Tensor, epsilon: float) -> torch.Tensor:
    """The h-function: about the value's root, so that large values stay near each other."""
    return value.sign() * ((value.abs() + 1.0).sqrt() - 1.0) + epsilon * value


def original(scaled: torch.Tensor, epsilon: float) -> Any:
    """The inverse of the h-function.

    RLlib took a difference of two near numbers and divided it by `epsilon ** 2`, which cost all
    but two digits with float32. This is the same fraction, expanded by their sum.
    """
    size, one = scaled.abs(), 2.0 * epsilon + 1.0
    root = (4.0 * epsilon * size + one**2).sqrt()
    return 2.0 * scaled * (size + 2.0) / (2.0 * epsilon * size + one + root)


register(R2D2, R2D2Config, R2D2TorchLearner)
