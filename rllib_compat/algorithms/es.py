"""ES: evolution strategies (`rllib/agents/es` of Ray 0.5 – 1.13, `algorithms/es` until 2.10).

Salimans et al., "Evolution Strategies as a Scalable Alternative to Reinforcement Learning" (2017).
"""

from __future__ import annotations

import math
from typing import Any

import torch

from rllib_compat.algorithms.base import register
from rllib_compat.algorithms.evolution import Evolution, EvolutionConfig, EvolutionLearner
from rllib_compat.algorithms.noise import Array, rank_gradient

#: What Adam adds to the root of its second moment.
_EPSILON = 1e-8


class ES(Evolution):
    """Follows the ranks of perturbed weights' returns, with Adam and a decay of the weights."""

    least_seconds = 0.2

    def ascent(self, returns: Array, perturbation: Any) -> Array:
        """Where the return grows, from the ranks of all returns."""
        return rank_gradient(returns, perturbation)

    def descent(self, ascent: Array, center: Array) -> Array:
        """The other way, and toward smaller weights."""
        decay: Array = self.config.l2_coeff * center
        return decay - ascent

    def is_enough(self, episodes: int, steps: int) -> bool:
        """Whether both are reached, `episodes_per_batch` and `train_batch_size`."""
        config = self.config
        least = config.episodes_per_batch, config.total_train_batch_size
        return bool(episodes >= least[0] and steps >= least[1])

    def search(self) -> dict[str, Any]:
        """Actions of perturbed episodes have noise."""
        return {"action_noise": self.config.action_noise_std}


class ESConfig(EvolutionConfig):
    """The config of ES."""

    settings = {
        "action_noise_std": "The deviation of what is added to Box actions of perturbed episodes.",
        "episodes_per_batch": "At least so many episodes make a step, and `train_batch_size` "
        "steps.",
        "eval_prob": "The share of episodes without a perturbation; the results are about those.",
        "l2_coeff": "How strongly weights decay.",
        "noise_size": "How many numbers the noise table has, 4 bytes each.",
        "noise_stdev": "The standard deviation of perturbations.",
        "report_length": "The results are the mean of so many iterations.",
        "stepsize": "Adam's learning rate.",
    }


class ESTorchLearner(EvolutionLearner):
    """Moves weights with Adam."""

    def optimizer_of(self, parameters: Any, config: Any) -> tuple[Any, Any]:
        """Adam, with `stepsize`."""
        return torch.optim.Adam(parameters), config.stepsize

    def step(self, optimizer: torch.optim.Optimizer) -> None:
        """Makes a step as ES's own Adam did: its epsilon is added before the bias is corrected."""
        for group in optimizer.param_groups:
            done = max(int(optimizer.state[p].get("step", 0)) for p in group["params"])
            group["eps"] = _EPSILON / math.sqrt(1.0 - group["betas"][1] ** (done + 1))
        optimizer.step()


register(ES, ESConfig, ESTorchLearner)
