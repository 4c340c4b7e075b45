"""Actions drawn in numpy from the distributions that Ray's modules have most.

torch takes a tenth of a millisecond to make a distribution, draw from it, and tell a probability;
for one row of numbers, numpy takes a tenth of that.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_LOG_OF_ROOT_OF_2_PI = 0.5 * np.log(2 * np.pi)


def draw(distribution: Any, inputs: Any) -> tuple[Any, Any] | None:
    """Draws an action from each row.

    Args:
        distribution: The class of distributions, one of Ray's.
        inputs: Logits, or means and logarithms of deviations `[B, n]`.

    Returns:
        The actions `[B]` or `[B, n / 2]`, and the logarithms of their probabilities or densities
        `[B]`; None where the class is another one.
    """
    rays = distribution.__module__.startswith("ray.rllib.")  # at other places in it until Ray 2.46
    known = _DRAWN.get(distribution.__name__) if rays else None
    return known(inputs) if known else None


def categorical(logits: Any) -> tuple[Any, Any] | None:
    """Draws one of `n` choices by each row of logits `[B, n]`; None where they are no numbers."""
    scaled = logits - logits.max(-1, keepdims=True)
    sums = np.exp(scaled).cumsum(-1)
    total = sums[:, -1:]
    if not np.isfinite(total).all():
        return None  # torch says what is wrong
    actions = (sums <= np.random.random(total.shape) * total).sum(-1)
    chosen = np.take_along_axis(scaled, actions[:, None], -1)
    return actions, (chosen - np.log(total))[:, 0]


def diagonal_gaussian(inputs: Any) -> tuple[Any, Any]:
    """Draws from normal distributions by each row of means and logarithms of deviations."""
    means, logs = np.split(inputs, 2, -1)
    noise = np.random.standard_normal(means.shape).astype(means.dtype)
    logp = -(0.5 * noise**2 + logs + _LOG_OF_ROOT_OF_2_PI).sum(-1)
    return means + np.exp(logs) * noise, logp.astype(means.dtype)


_DRAWN = {"TorchCategorical": categorical, "TorchDiagGaussian": diagonal_gaussian}
