"""What the caller knows about a checkpoint and the checkpoint does not say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any

from rllib_compat.neutral import spaces
from rllib_compat.neutral.errors import ConfigError
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.space_text import parse_repr
from rllib_compat.neutral.spaces import Space


@frozen
class Given:
    """What the caller knows about a checkpoint and the checkpoint does not say.

    Attributes:
        algorithm: Its name (`PPO`).
        config: The trainer's config; replaces what was found.
        env: The environment's name.
        observation_spaces: By policy id; the key None stands for every policy.
        action_spaces: Likewise.
        model: The RLModule (`module:Class`) that takes the weights of a custom model. It is
            imported and built.
        weights_map: The module's name for each array of the custom model, where they differ.
        policies: The ids of the policies that are wanted; empty: all of them.
        trust: Exact names of classes and functions, `module:Class`, that may be used although a
            file names them.
        num_gpus: The GPUs to train with; None: as before, if the machine has them.
        num_env_runners: The processes to sample with; None: as before, if the machine has the CPUs.
        keep_resources: Whether the old machine's resources are kept, whatever this one has.
        overrides: Keys of the config, of any era, that the caller adds or replaces; code among
            them is the caller's own.
    """

    algorithm: str | None = None
    config: Mapping[str, Any] | None = None
    env: Any = None
    observation_spaces: Mapping[str | None, Space] = field(default_factory=dict)
    action_spaces: Mapping[str | None, Space] = field(default_factory=dict)
    model: str | None = None
    weights_map: Mapping[str, str] = field(default_factory=dict)
    policies: tuple[str, ...] = ()
    trust: tuple[str, ...] = ()
    num_gpus: int | None = None
    num_env_runners: int | None = None
    keep_resources: bool = False
    overrides: Mapping[str, Any] = field(default_factory=dict)

    def with_arguments(
        self,
        *,
        algorithm: str | None = None,
        config: Mapping[str, Any] | None = None,
        env: Any = None,
        observation_space: Any = None,
        action_space: Any = None,
    ) -> Given:
        """The same with arguments of a call, where these are given.

        Spaces are those of all policies: gymnasium's, gym's, or text.

        Raises:
            ConfigError: A space is none.
        """
        return replace(
            self,
            algorithm=algorithm or self.algorithm,
            config=self.config if config is None else config,
            env=self.env if env is None else env,
            observation_spaces=_with_space(self.observation_spaces, observation_space),
            action_spaces=_with_space(self.action_spaces, action_space),
        )


def _with_space(known: Mapping[str | None, Space], space: Any) -> Mapping[str | None, Space]:
    if space is None:
        return known
    read = parse_repr(space) if isinstance(space, str) else spaces.from_object(space)
    if read is None:
        raise ConfigError(f"{space!r} is not a space.", fix="Give one of gymnasium, or 'Box(4,)'.")
    return {**known, None: read}
