"""What the linear bandits think of arms or items, in numpy and float64.

`rllib_compat.networks.ops.bandit_torch` has the same table in torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Own: TypeAlias = Mapping[str, Array]
Settings: TypeAlias = Mapping[str, Any]


def linear_bandit(own: Own, values: Sequence[Array], settings: Settings) -> Array:
    """The reward that each arm is expected to bring, and a bonus for what is not known of it.

    Arrays, one row for each regression: theta `[k, d]` and covariance `[k, d, d]`; precision and f,
    from which these follow, only have to be of their shapes. It takes what is observed: `[…, d]`
    of k arms, or a table `[…, n, d]` of n items, for which there is one regression. Settings:
    `bonus`, how many standard deviations are added; `times`, how often the expectation counts.
    """
    (x,) = values
    theta, covariance = own["theta"], own["covariance"]
    arms, size = theta.shape
    if own["f"].shape != (arms, size) or own["precision"].shape != covariance.shape:
        raise ValueError("the parts of the posterior are of different sizes")
    if covariance.shape != (arms, size, size):
        raise ValueError(f"a covariance of the shape {covariance.shape} for {arms} of {size}")
    if settings["items"]:
        scores, wide = x @ theta[0], np.sum(x @ covariance[0] * x, -1)
    else:
        scores, wide = x @ theta.T, np.einsum("...d,kde,...e->...k", x, covariance, x)
    return np.asarray(settings["times"] * scores + settings["bonus"] * np.sqrt(wide))


OPS: dict[str, Callable[[Own, Sequence[Array], Settings], Any]] = {"linear_bandit": linear_bandit}
