"""Action distributions as old policies had them."""

from __future__ import annotations

import copyreg
from abc import ABCMeta
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from rllib_compat.neutral.public import public
from rllib_compat.ray_versions import modules

_ray: Any = modules.torch_distributions()


class _SquashedClass(ABCMeta):
    """The class of the classes that `squashed_gaussian` makes; pickle knows each by its settings.

    A module that is exported has one, and pickle finds no class that a function has made.
    """

    settings: tuple[Any, ...]


def _reduce(made: _SquashedClass) -> tuple[Any, ...]:
    return squashed_gaussian, made.settings


copyreg.pickle(_SquashedClass, _reduce)


@public("rllib_compat.modules")
def squashed_gaussian(
    low: float | Sequence[float],
    high: float | Sequence[float],
    least_log_std: float,
    squashes: int = 1,
) -> Any:
    """A normal distribution squashed into a range, as a class for an RLModule.

    Today's (`TorchSquashedGaussian`) always squashes into -1 … 1, takes -5 as the least log
    standard deviation, and gives the mean before squashing as the deterministic action. This one
    does all three as the old policies did (`TorchSquashedGaussian` of Ray 0.8.5 – 2.x, and
    `SACModel` of Ray 0.7).

    Args:
        low: The least action, a number or one for each dimension.
        high: The greatest action, likewise.
        least_log_std: Log standard deviations below it are raised to it.
        squashes: How often a sample goes through tanh before it is stretched into the range. Ray
            0.7 and 0.8.0 did that twice, and took the probability of what comes out of the first.
    """

    class SquashedGaussian(_ray.TorchSquashedGaussian, metaclass=_SquashedClass):  # type: ignore[misc]
        settings = (low, high, least_log_std, squashes)

        @classmethod
        def from_logits(cls, logits: torch.Tensor, **_: object) -> Any:
            mean, log_std = torch.tensor_split(logits, 2, -1)
            deviation = log_std.clamp(least_log_std, _MOST_LOG_STD).exp()
            bounds = {"low": mean.new_tensor(low), "high": mean.new_tensor(high)}
            return cls(loc=mean, scale=deviation, **bounds)

        def _squash(self, sample: torch.Tensor) -> Any:
            for _ in range(squashes - 1):
                sample = torch.tanh(sample)
            return super()._squash(sample)

        def _unsquash(self, sample: torch.Tensor) -> Any:
            sample = super()._unsquash(sample)
            for _ in range(squashes - 1):
                sample = torch.atanh(sample.clamp(-1.0 + _TINY, 1.0 - _TINY))
            return sample

        def to_deterministic(self) -> Any:
            return _ray.TorchDeterministic(loc=self._squash(self.loc))

        @staticmethod
        def draw_in_numpy(inputs: Any) -> tuple[Any, Any]:
            """Draws from each row in numpy: the actions, and the logarithms of their densities."""
            means, logs = np.split(inputs, 2, -1)
            logs = logs.clip(least_log_std, _MOST_LOG_STD)
            noise = np.random.standard_normal(means.shape).astype(means.dtype)
            before = means + np.exp(logs) * noise
            squashed = before
            for _ in range(squashes):
                squashed = np.tanh(squashed)
            actions = (squashed + 1) / 2 * np.subtract(high, low) + low
            # 1 - tanh(x)² = 4 / (e^x + e^-x)²
            slopes = 2 * (np.log(2) - np.logaddexp(before, -before))
            logp = -(0.5 * noise**2 + logs + _LOG_OF_ROOT_OF_2_PI + slopes).sum(-1)
            return actions.clip(low, high).astype(means.dtype), logp.astype(means.dtype)

    return SquashedGaussian


#: `MAX_LOG_NN_OUTPUT` and `SMALL_NUMBER` of every Ray.
_MOST_LOG_STD = 2.0
_TINY = 1e-6

_LOG_OF_ROOT_OF_2_PI = 0.5 * np.log(2 * np.pi)


def distribution(kind: str, **settings: Any) -> Any:
    """The class of a policy's action distribution, of the kind `squashed`, `normal`, ….

    The settings are those of a squashed one (see `squashed_gaussian`).
    """
    if kind == "squashed":
        return squashed_gaussian(**settings)
    return _CLASSES[kind]


class Deterministic(_ray.TorchDeterministic):  # type: ignore[misc]
    """The distribution of a policy that gives actions themselves."""

    @classmethod
    def from_logits(cls, logits: torch.Tensor, **_: object) -> Deterministic:
        return cls(loc=logits)


_CLASSES = {
    "normal": _ray.TorchDiagGaussian,
    "categorical": _ray.TorchCategorical,
    "deterministic": Deterministic,
}
