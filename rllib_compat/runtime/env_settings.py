"""All that a legacy config says about its environment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.public import public

#: The key of an `env_config` under which a converted checkpoint names its environment, and says
#: what stands around it (`LegacyEnvByName`); the rest is the environment's own.
STORED = "__legacy_env__"


@public("rllib_compat.adapters")
@frozen
class EnvSettings:
    """All that a legacy config says about its environment.

    Attributes:
        env: A name, a class, or a creator that takes the env context.
        env_config: What the environment gets as its context.
        horizon: The number of steps after which an episode is truncated.
        soft_horizon: Whether the next episode continues where the horizon cut, without a reset.
        no_done_at_end: Whether the end of an episode is no terminal state to learn from.
        clip_rewards: True for the sign of each reward, a number for a limit on both sides.
        preprocessor_pref: "deepmind", as ever by default, for its wrappers around Atari games (and
            rewards clipped to their sign, unless `clip_rewards` says otherwise); "rllib" for
            RLlib's own preprocessing of raw frames; None for neither.
        atari: Their settings, where the config has them: `dim`, `framestack`, `zeros_first`,
            `grayscale` and `zero_mean`.
        legacy_ray: The Ray whose wrappers are wanted, where it is known.
        multi_agent: Whether the config defines policies, so that the environment has many agents.
        policy_spaces: Observation and action space by policy, where the config names them.
        policy_mapping_fn: The agent's policy, as the legacy config maps it.
        observation_fn: Makes the agents' observations of all that the environment gives.
        old_stack: Whether the old API stack steps it.
    """

    env: str | type | Callable[..., Any] | None
    env_config: Mapping[str, Any] = field(default_factory=dict)
    horizon: int | None = None
    soft_horizon: bool = False
    no_done_at_end: bool = False
    clip_rewards: bool | float | None = None
    preprocessor_pref: str | None = "deepmind"
    atari: Mapping[str, Any] = field(default_factory=dict)
    legacy_ray: str | None = None
    multi_agent: bool = False
    policy_spaces: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    policy_mapping_fn: Callable[..., str | None] | None = None
    observation_fn: Callable[..., Mapping[Any, Any]] | None = None
    old_stack: bool = False

    @property
    def needs_adapter(self) -> bool:
        """Whether something is asked of the environment that it does not do itself."""
        return bool(self.horizon or self.clip_rewards or self.no_done_at_end or self.observation_fn)

    @property
    def plain(self) -> bool:
        """Whether nothing is asked that gymnasium's own environment does not do."""
        return not (self.needs_adapter or self.multi_agent)
