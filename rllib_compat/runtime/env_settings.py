"""The settings of a legacy config for its environment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

from packaging.version import Version

from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.public import public

#: The key of an `env_config` in which a converted checkpoint has the environment's name and
#: settings (`LegacyEnvByName`); the other keys are the environment's own.
STORED = "__legacy_env__"
#: The settings that a legacy key switches off → that key.
SWITCHES: Mapping[str, str] = {
    "has_preprocessors": "_disable_preprocessor_api",
    "has_env_check": "disable_env_checking",
}
#: The first Ray whose preprocessors checked observations, the first that checked environments, and
#: the first that does neither: it has connectors.
_PREPROCESSORS_CHECK, _ENVS_ARE_CHECKED, _CONNECTORS = map(Version, ("0.6", "1.12", "2.40"))


@public("rllib_compat.adapters")
@frozen
class EnvSettings:
    """All that a legacy config says about its environment.

    Attributes:
        env: A name, a class, or a creator that takes the env context.
        env_config: The env context of the environment.
        horizon: The number of steps after which an episode is truncated.
        soft_horizon: Whether the next episode continues at the horizon without a reset.
        no_done_at_end: Whether the end of an episode does not count as terminated.
        clip_rewards: True: the sign of each reward; a number: the limit on both sides.
        preprocessor_pref: "deepmind", the default, for DeepMind's wrappers around Atari games (and
            the sign of rewards, unless `clip_rewards` is set); "rllib" for RLlib's own
            preprocessing of frames; None for neither.
        atari: The settings of these that the config has: `dim`, `framestack`, `zeros_first`,
            `grayscale` and `zero_mean`.
        legacy_ray: The Ray whose wrappers to use, if known.
        multi_agent: Whether the config defines policies for several agents.
        policy_spaces: Observation and action space by policy, if the config has them.
        policy_mapping_fn: The config's function from an agent to a policy.
        observation_fn: Returns the agents' observations for all those of the environment.
        old_stack: Whether the environment runs on the old API stack.
        validate_env: Checks each new environment, from (env, env context).
        has_preprocessors: Whether the config's Ray was to preprocess observations.
        has_env_check: Whether it was to check environments.
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
    validate_env: Callable[[Any, Any], object] | None = None
    has_preprocessors: bool = True
    has_env_check: bool = True

    @property
    def needs_adapter(self) -> bool:
        """Whether a setting needs a wrapper around the environment."""
        return bool(self.horizon or self.clip_rewards or self.no_done_at_end or self.observation_fn)

    @property
    def plain(self) -> bool:
        """Whether gymnasium's own environment needs no wrapper."""
        return not (self.needs_adapter or self.multi_agent)

    @property
    def checks_every_100th(self) -> bool:
        """Whether the preprocessors of the config's Ray checked the first and every 100th one."""
        return self.has_preprocessors and self._is_of_a_ray_since(_PREPROCESSORS_CHECK)

    @property
    def checks_first_two(self) -> bool:
        """Whether the config's Ray checked what a new environment's `reset` and `step` return."""
        return self.has_env_check and self._is_of_a_ray_since(_ENVS_ARE_CHECKED)

    @property
    def checks_observations(self) -> bool:
        """Whether the config's Ray compared observations with their space."""
        return self.checks_every_100th or self.checks_first_two

    def _is_of_a_ray_since(self, first: Version) -> bool:
        return self.legacy_ray is not None and first <= Version(self.legacy_ray) < _CONNECTORS
