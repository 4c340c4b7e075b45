"""Noise that deterministic policies explore with (`rllib/utils/exploration` of Ray 0.8 – 2.x)."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rllib_compat.neutral.errors import ConfigError

#: What each kind of noise takes, and the defaults of its class in Ray 1.13 and 2.10.
DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "GaussianNoise": {
        "random_timesteps": 1000,
        "stddev": 0.1,
        "initial_scale": 1.0,
        "final_scale": 0.02,
        "scale_timesteps": 10_000,
    },
    "OrnsteinUhlenbeckNoise": {
        "random_timesteps": 1000,
        "ou_theta": 0.15,
        "ou_sigma": 0.2,
        "ou_base_scale": 0.1,
        "initial_scale": 1.0,
        "final_scale": 0.02,
        "scale_timesteps": 10_000,
    },
    "StochasticSampling": {},  # of a distribution without any spread: nothing is added
}

#: What `ParameterNoise` took for the deviation of noise without an `ou_sigma`.
_DEVIATION = 0.2


class Noise:
    """Adds noise to actions; for the first steps, actions are drawn at random.

    The noise is scaled down with the steps that all env runners have sampled. The state of an
    Ornstein-Uhlenbeck process belongs to an env runner, moves on once for each call, and is kept in
    no checkpoint: it forgets what was within some ten steps.

    Args:
        config: The `type`, a key of `DEFAULTS`, and what it takes.
        action_space: The Box of the actions.
    """

    def __init__(self, config: Mapping[str, Any], action_space: Any) -> None:
        self.kind, self.told = check(config)
        self._space = action_space
        # Copies: a space that came through the object store can't be written, of which torch warns.
        self._low = torch.tensor(action_space.low, dtype=torch.float32)
        self._high = torch.tensor(action_space.high, dtype=torch.float32)
        size = self._high - self._low
        self._range = torch.where(torch.isinf(size), torch.ones_like(size), size)
        self._state = torch.zeros_like(size)
        #: What noise is multiplied by whatever was sampled; None: a scale that falls.
        self.fixed_scale: float | None = None
        self._scale = float(self.told.get("initial_scale", 0.0))

    @property
    def deviation(self) -> float:
        """How far it goes now: what noise on weights is measured against."""
        return float(self.told.get("ou_sigma", _DEVIATION)) * self._scale

    def __call__(self, actions: Tensor, step: int) -> Tensor:
        """Actions to explore with.

        Args:
            actions: What the policy does, `[B, …]`.
            step: How many steps were sampled before.
        """
        if self.kind == "StochasticSampling":
            return actions
        self._scale = scale(self.told, step) if self.fixed_scale is None else self.fixed_scale
        if step < self.told["random_timesteps"]:
            drawn = np.stack([self._random_space.sample() for _ in range(len(actions))])
            return torch.as_tensor(drawn, dtype=actions.dtype, device=actions.device)
        noise = (self._scale * self._draw(actions)).to(actions.device)
        low, high = self._low.to(actions.device), self._high.to(actions.device)
        return torch.minimum(torch.maximum(actions + noise, low), high)

    @cached_property
    def _random_space(self) -> Any:
        """The space that random actions are drawn from, by the seed that this process has."""
        space = deepcopy(self._space)
        space.seed(int(np.random.randint(2**31)))
        return space

    def _draw(self, actions: Tensor) -> Tensor:
        if self.kind == "GaussianNoise":
            return torch.randn(actions.shape) * self.told["stddev"]
        drawn = self.told["ou_sigma"] * torch.randn(self._state.shape)
        self._state = self._state - self.told["ou_theta"] * self._state + drawn
        return self.told["ou_base_scale"] * self._state * self._range


def scale(told: Mapping[str, Any], step: int) -> float:
    """What noise is multiplied by after so many steps; it begins to fall after the random ones."""
    begin, length = told["random_timesteps"], told["scale_timesteps"]
    ends = (told["initial_scale"], told["final_scale"])
    return float(np.interp(step, [begin, begin + max(1, length)], ends))


def check(config: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Makes sure that there is such noise.

    Returns:
        Its kind, and everything that it takes.

    Raises:
        ConfigError: There is none.
    """
    told = dict(config)
    kind = told.pop("type", None)
    name = (kind if isinstance(kind, str) else getattr(kind, "__name__", "")).rpartition(".")[2]
    if name not in DEFAULTS:
        raise ConfigError(
            f"Deterministic policies explore with {', '.join(DEFAULTS)} here, not with {kind!r}.",
            where="exploration_noise.type",
            fix="For noise of your own, override `_forward_exploration` of the RLModule.",
        )
    known = DEFAULTS[name]
    if odd := sorted(told.keys() - known.keys()):
        raise ConfigError(
            f"{name} does not take {', '.join(odd)}.",
            where="exploration_noise",
            fix=f"It takes {', '.join(known) or 'nothing'}.",
        )
    return name, {**known, **{k: v for k, v in told.items() if v is not None}}
