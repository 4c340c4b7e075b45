"""ARS: augmented random search (`rllib/agents/ars` of Ray 0.5 – 1.13, `algorithms/ars` until 2.10).

Mania et al., "Simple random search provides a competitive approach to reinforcement learning"
(2018).
"""

from __future__ import annotations

from typing import Any

import torch

from rllib_compat.algorithms.base import register
from rllib_compat.algorithms.evolution import Evolution, EvolutionConfig, EvolutionLearner
from rllib_compat.algorithms.noise import Array, best_gradient


class ARS(Evolution):
    """Follows the best of perturbed weights' returns with plain steps."""

    def ascent(self, returns: Array, perturbation: Any) -> Array:
        """Where the return grows, from the best returns."""
        tried, used = self.config.num_rollouts, self.config.rollouts_used
        return best_gradient(returns, perturbation, tried=tried, used=used)

    def is_enough(self, episodes: int, steps: int) -> bool:  # noqa: ARG002
        """Whether `num_rollouts` episodes were played."""
        enough: bool = episodes >= self.config.num_rollouts
        return enough

    def search(self) -> dict[str, Any]:
        """A constant part of the reward is taken away."""
        return {"offset": self.config.offset}


class ARSConfig(EvolutionConfig):
    """The config of ARS."""

    settings = {
        "action_noise_std": "Nothing; it did nothing in any Ray, either.",
        "eval_prob": "The share of episodes without a perturbation; the results are about those.",
        "noise_size": "How many numbers the noise table has, 4 bytes each.",
        "noise_stdev": "The standard deviation of perturbations.",
        "num_rollouts": "At least so many episodes make a step.",
        "offset": "What is taken from the reward of each step, where there is a bonus for "
        "survival.",
        "report_length": "The results are the mean of so many iterations.",
        "rollouts_used": "Of so many, the best pairs are used.",
        "sgd_stepsize": "The learning rate.",
    }


class ARSTorchLearner(EvolutionLearner):
    """Moves weights with plain steps."""

    def optimizer_of(self, parameters: Any, config: Any) -> tuple[Any, Any]:
        """Plain steps of `sgd_stepsize`."""
        return torch.optim.SGD(parameters, lr=config.sgd_stepsize), config.sgd_stepsize


register(ARS, ARSConfig, ARSTorchLearner)
