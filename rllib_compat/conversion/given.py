"""The caller's input: facts of a checkpoint, and samples for the comparison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from rllib_compat.formats.paths import local_path
from rllib_compat.neutral import spaces
from rllib_compat.neutral.errors import ConfigError
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.spaces import Space, parse_repr

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


@frozen
class Given:
    """The caller's facts about a checkpoint.

    Attributes:
        algorithm: The algorithm's name (`PPO`).
        config: The trainer's config, which replaces the checkpoint's.
        env: The environment.
        observation_spaces: By policy id; the key None means every policy.
        action_spaces: Likewise.
        model: The RLModule (`module:Class`) that takes the weights of a custom model. It is
            imported and built.
        weights_map: The module's name for each array of the custom model, where they differ.
        policies: The ids of the policies to convert; empty: all.
        trust: Exact names (`module:Class`) of classes and functions that may be imported though
        they come from a file.
        num_gpus: The GPUs to train with; None: as before, if the machine has them.
        num_env_runners: The processes to sample with; None: as before, if the machine has the CPUs.
        keep_resources: Whether to keep the old machine's resources.
        overrides: Keys of the config, of any Ray, to add or replace; they may have code.
        config_if_none: The trainer's config where the checkpoint has none.
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
    config_if_none: Mapping[str, Any] | None = None

    def with_arguments(
        self,
        algorithm: str | None = None,
        config: Mapping[str, Any] | str | Path | None = None,
        env: object = None,
        observation_space: object = None,
        action_space: object = None,
        model: str | type | None = None,
    ) -> Given:
        """Returns the facts with those arguments of a call that are not None.

        Spaces are gymnasium's, gym's or text, for all policies or in a dict by policy id. A config
        may be a file, and a model a class.

        Raises:
            ConfigError: A space is invalid, or the config cannot be read.
        """
        if isinstance(config, (str, Path)):
            config = _config_of(config)
        if isinstance(model, type):
            model = f"{model.__module__}:{model.__qualname__}"
        return replace(
            self,
            model=model or self.model,
            algorithm=algorithm or self.algorithm,
            config=self.config if config is None else config,
            env=self.env if env is None else env,
            observation_spaces=_with_space(self.observation_spaces, observation_space),
            action_spaces=_with_space(self.action_spaces, action_space),
        )


def _config_of(file: str | Path) -> Mapping[str, Any]:
    from rllib_compat.config.files import read_data  # rarely needed

    config = read_data(str(file))
    if not isinstance(config, Mapping):
        raise ConfigError(f"{file} is not a dict.", fix="Pass the params.json of the trial.")
    return config


def _with_space(known: Mapping[str | None, Space], space: object) -> Mapping[str | None, Space]:
    if space is None:
        return known
    if isinstance(space, dict):
        return {**known, **{policy: _space(of_policy) for policy, of_policy in space.items()}}
    return {**known, None: _space(space)}


def _space(space: object) -> Space:
    read = parse_repr(space) if isinstance(space, str) else spaces.from_object(space)
    if read is None:
        raise ConfigError(
            f"{space!r} is not a space.",
            fix="Pass a space of gymnasium, or text such as 'Box(4,)'.",
        )
    return read


#: The largest number of random inputs: more take memory without proving more.
MOST_INPUTS = 1_000_000


@frozen
class Samples:
    """The inputs for the comparison of networks.

    Attributes:
        random: The number of random inputs.
        observations: Observations by policy, `[B, network inputs]`.
        recorded: The old Ray's recording, as `recordings.load` returns it.
    """

    random: int = 1000
    observations: Mapping[str, Array] = field(default_factory=dict)
    recorded: Mapping[str, Array] | None = None

    @classmethod
    def of(
        cls,
        random: int,
        observations: str | Path | Mapping[str, Array] | None,
        recorded: str | Path | Mapping[str, Array] | None,
    ) -> Samples:
        """Takes arrays, or reads them from `.npz` files.

        Raises:
            CheckpointError: A file has anything but plain arrays.
            ConfigError: The number of random inputs is too small or too large.
        """
        least = 0 if observations is not None or recorded is not None else 1
        if not least <= random <= MOST_INPUTS:
            raise ConfigError(
                f"Old and new cannot be compared on {random} random inputs.",
                where="inputs",
                fix=f"Pass a number from {least} to {MOST_INPUTS:,}.",
            )
        from rllib_compat.conversion.recordings import load  # rarely needed

        if isinstance(observations, (str, Path)):
            found = load(local_path(observations))
            observations = {name.split("/", 1)[0]: array for name, array in found.items()}
        if isinstance(recorded, (str, Path)):
            recorded = load(local_path(recorded))
        return cls(random, observations or {}, recorded)
