"""Configures connectors that do what the observation preprocessors of old Rays did."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from rllib_compat.networks.previous_steps import LOOKING_BACK
from rllib_compat.neutral.public import public
from rllib_compat.ray_versions import configs, connectors
from rllib_compat.runtime.env_settings import STORED, EnvSettings
from rllib_compat.runtime.preprocessors import LegacyPreprocessor, has_integers

if TYPE_CHECKING:
    from gymnasium import Space
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig


def add_preprocessors(
    config: AlgorithmConfig, *, flat: bool = False, filter_keeps_integers: bool = False
) -> None:
    """Adds the preprocessing connectors before a config's own, unless they are there."""
    if getattr(config, "groups_observations", False):
        return  # its own connectors convert observations to arrays
    made = connectors.env_to_module_factory(config)
    if not (isinstance(made, partial) and made.func is with_preprocessors):
        multi_agent = configs.is_multi_agent(config)
        keeps = getattr(config, "keeps_observations", ())
        legacy = legacy_preprocessor(config)
        structured = multi_agent and _flatten_policies(config, keeps, legacy)
        made = partial(with_preprocessors, made, multi_agent, structured=structured)
        if legacy is not None:
            made = partial(made, legacy=legacy)
        if keeps:
            made = partial(made, keeps=keeps)
    if flat:
        made = partial(made, structured=True)
    if filter_keeps_integers:
        made = partial(made, filter_keeps_integers=True)
    config.env_runners(env_to_module_connector=made)


def remove_preprocessors(config: AlgorithmConfig, spaces: Mapping[str, Any]) -> None:
    """Removes the preprocessing connectors, for user's modules that take structured observations.

    Args:
        config: The config.
        spaces: The observation space of each policy with such a module.
    """
    made = connectors.env_to_module_factory(config)
    if isinstance(made, partial) and made.func is with_preprocessors:
        config.env_runners(env_to_module_connector=made.args[0])
    if configs.is_multi_agent(config) and isinstance(config.policies, dict):
        policies = dict(config.policies)
        for name, space in spaces.items():
            policies[name] = copy.copy(policies[name])
            policies[name].observation_space = space
        config.multi_agent(policies=policies)


def _flatten_policies(
    config: AlgorithmConfig, keeps: tuple[str, ...], legacy: LegacyPreprocessor | None
) -> bool:
    """Flattens the policies' observation spaces; returns whether any was structured.

    The environment's spaces stay, and so do those of policies that take a Dict with one of the
    `keeps`.
    """
    import gymnasium
    import numpy as np

    from rllib_compat.runtime.observation_connectors import set_original_space, space_after

    policies = dict(config.policies) if isinstance(config.policies, dict) else {}
    structured = False
    for name, spec in policies.items():
        space = getattr(spec, "observation_space", None)
        if space is None or _is_kept(space, keeps):
            continue
        if not _is_vector_or_image(space):
            space = space if legacy is None else space_after(legacy, space)
            shape = (gymnasium.spaces.flatdim(space),)
            policies[name] = copy.copy(spec)
            flat = gymnasium.spaces.Box(-np.inf, np.inf, shape, np.float32)
            policies[name].observation_space = set_original_space(flat, space)
            structured = True
    if structured:
        config.multi_agent(policies=policies)
    return structured


def may_need_preprocessors(env: object) -> bool:
    """Whether an environment's observations may be anything but a Box of floats.

    Args:
        env: The argument of `AlgorithmConfig.environment(env=…)`. Before training, only the
            observations of gymnasium's own environments are known.
    """
    import gymnasium

    if not isinstance(env, str) or env not in gymnasium.registry:
        return env is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as that the config's version is outdated
        try:
            made = gymnasium.make(env)
        except Exception:  # training will raise it (a simulator or a display is missing)
            return True
    made.close()  # type: ignore[no-untyped-call]

    space = made.observation_space
    return not _is_vector_or_image(space) or has_integers(space)


@public("rllib_compat.adapters")
def with_preprocessors(
    inner: Callable[..., Any] | None,
    multi_agent: bool,
    env: object = None,
    spaces: object = None,
    device: object = None,
    *,
    structured: bool = False,
    keeps: tuple[str, ...] = (),
    legacy: LegacyPreprocessor | None = None,
    filter_keeps_integers: bool = False,
) -> list[Any]:
    """Creates the env-to-module connectors, with preprocessing.

    Until 2.x, models got flat vectors: Discrete and MultiDiscrete parts as one-hot, Tuple and Dict
    parts concatenated, and a two-dimensional Box row by row. In the installed Ray, a connector does
    that, if a config has it.

    Args:
        inner: The config's own `env_to_module_connector`, if any; it gets preprocessed
            observations.
        multi_agent: Whether observations are given by agent.
        env: The env runner's environment, or None.
        spaces: The environment's spaces, if it is in another process. Ray 2.40 passes none.
        device: The module's device.
        structured: Whether agents may have structured observations, also those not known yet.
        keeps: A Dict with one of these parts is not flattened.
        legacy: The legacy preprocessor of the config's Ray, if any.
        filter_keeps_integers: Whether an observation filter returns integers for integers.
    """
    from ray.rllib.connectors import env_to_module

    from rllib_compat.runtime.observation_connectors import (
        FlattenObservations,
        FloatSpace,
        LegacyObservations,
        MeanStdFilter,
        OriginalSpace,
        changes,
        space_after,
    )

    own = connectors.make_connectors(inner, env, spaces, device)
    space = _observation_space(env, spaces)
    first = []
    if legacy is not None and changes(legacy, space):
        first, space = [LegacyObservations(legacy)], space_after(legacy, space)
    by_agent = space.spaces.values() if multi_agent and space is not None else [space]
    if any(_is_kept(part, keeps) for part in by_agent):
        return own
    known = (part for part in by_agent if part is not None)
    filters = [each for each in own if isinstance(each, env_to_module.MeanStdFilter)]
    filtered = bool(filters)
    for each in filters:
        if filter_keeps_integers and isinstance(each, MeanStdFilter):
            each.keep_integers(space)
    if structured or not all(map(_is_vector_or_image, known)):
        # The filter's space has lost `original_space`.
        last = [OriginalSpace(original=space)] if filtered and space is not None else []
        return [*first, FlattenObservations(multi_agent=multi_agent), *own, *last]
    floats = [FloatSpace()] if has_integers(space, images=filtered) else []
    return [*first, *floats, *own]


def legacy_preprocessor(config: AlgorithmConfig) -> LegacyPreprocessor | None:
    """Returns the legacy preprocessor for a config's observations, if it has one."""
    stored = config.env_config.get(STORED, {}).get("settings")
    settings = getattr(config.env, "settings", None) or (stored and EnvSettings(None, **stored))
    if not settings or settings.preprocessor_pref is None or settings.old_stack:
        return None
    return LegacyPreprocessor.from_model(settings.atari, settings.legacy_ray)


def _is_kept(space: Space[Any], keeps: tuple[str, ...]) -> bool:
    """Whether a space is a Dict with one of these parts."""
    return any(key in getattr(space, "spaces", ()) for key in keeps)


def _is_vector_or_image(space: Any) -> bool:
    """Whether models took observations of a space without flattening."""
    return type(space).__name__ == "Box" and len(space.shape) in (1, 3)


def _observation_space(env: Any, spaces: Any) -> Any:
    if env is not None:
        return getattr(env, "single_observation_space", None) or env.observation_space
    return spaces["__env_single__"][0] if spaces and "__env_single__" in spaces else None


def set_previous_steps(
    config: AlgorithmConfig, actions: int, rewards: int, *, one_hot: bool = False
) -> None:
    """Sets how many previous actions and rewards a config's modules get.

    A config may have such a setting though its old network got none: up to Ray 0.8.5, `use_lstm`
    could be ignored.
    """
    # New modules take one-hot previous steps past their layers, and no others.
    sees = (one_hot and bool(actions), one_hot and bool(rewards))
    if any(config.model_config.get(key) for key in LOOKING_BACK):
        configs.update_model_config(config, dict(zip(LOOKING_BACK, sees, strict=True)))
    had = connectors.env_to_module_factory(config)
    inner = _without_previous_steps(had)
    if actions or rewards:
        multi_agent = configs.is_multi_agent(config)
        steps = (actions, rewards, multi_agent)
        inner = partial(with_previous_steps, inner, *steps, one_hot=one_hot)
    elif inner is had:
        return
    config.env_runners(
        env_to_module_connector=inner,
        # The number of steps that a chunk of an episode has from the one before.
        episode_lookback_horizon=max(config.episode_lookback_horizon, actions, rewards),
    )


def previous_steps(config: AlgorithmConfig) -> tuple[int, int, bool]:
    """Returns how many previous actions and rewards modules get, and whether as one-hot."""
    made = connectors.env_to_module_factory(config)
    while isinstance(made, partial) and made.func is with_preprocessors:
        made = made.args[0]
    if not isinstance(made, partial) or made.func is not with_previous_steps:
        return 0, 0, False
    return made.args[1], made.args[2], bool(made.keywords.get("one_hot"))


def space_without_previous_steps(space: Space[Any], size: int) -> Any:
    """Returns the space of observations without previous steps.

    Args:
        space: The module's observation space.
        size: How many of its last numbers are previous actions and rewards.
    """
    from gymnasium.spaces import Box

    low, high = space.low[:-size], space.high[:-size]  # type: ignore[attr-defined]
    made = Box(low, high, dtype=space.dtype)  # type: ignore[arg-type]
    if hasattr(space, "original_space"):
        made.original_space = space.original_space  # type: ignore[attr-defined]
    return made


def flat_actions(space: Space[Any], actions: object, count: int, one_hot: bool) -> Any:
    """Converts actions to the vectors that modules get of previous steps, `[count, k]`.

    Without actions, they are zeros, as before the first step.
    """
    import numpy as np
    import tree

    from rllib_compat.networks.ops.in_numpy import one_hot as encode
    from rllib_compat.networks.previous_steps import choices_in

    parts = choices_in(space)
    if actions is None:
        flat = np.zeros((count, len(parts)))
    else:
        leaves = [np.asarray(leaf).reshape(count, -1) for leaf in tree.flatten(actions)]
        flat = np.concatenate(leaves, axis=-1)
    return encode({}, {"parts": parts}, flat) if one_hot else flat


def _without_previous_steps(made: object) -> Any:
    if not isinstance(made, partial):
        return made
    if made.func is with_previous_steps:
        return _without_previous_steps(made.args[0])
    if made.func is not with_preprocessors:
        return made
    inner = _without_previous_steps(made.args[0])
    if inner is made.args[0]:
        return made
    return partial(with_preprocessors, inner, *made.args[1:], **made.keywords)


@public("rllib_compat.adapters")
def with_previous_steps(
    inner: Callable[..., Any] | None,
    actions: int,
    rewards: int,
    multi_agent: bool,
    env: object = None,
    spaces: object = None,
    device: object = None,
    *,
    one_hot: bool = False,
) -> list[Any]:
    """Creates the env-to-module connectors, with `PreviousSteps` as the last."""
    from rllib_compat.runtime.observation_connectors import PreviousSteps

    own = connectors.make_connectors(inner, env, spaces, device)
    last = PreviousSteps(actions=actions, rewards=rewards, one_hot=one_hot, multi_agent=multi_agent)
    return [*own, last]


@public("rllib_compat.adapters")
def mean_std_filter(env: object = None, spaces: object = None, device: object = None) -> Any:
    """Creates the observation filter. Ray 2.40 passes only `env`, later Rays all three.

    RLlib's old filter did not clip; the connector clips at ±10 by default.
    """
    from rllib_compat.runtime.observation_connectors import MeanStdFilter

    del env, spaces, device
    return MeanStdFilter(clip_by_value=float("inf"))


@public("rllib_compat.adapters")
def multi_agent_mean_std_filter(
    env: object = None, spaces: object = None, device: object = None
) -> Any:
    """Creates the observation filter with statistics for each policy."""
    from rllib_compat.runtime.observation_connectors import PolicyMeanStdFilter

    del env, spaces, device
    return PolicyMeanStdFilter(multi_agent=True, clip_by_value=float("inf"))
