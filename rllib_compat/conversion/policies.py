"""Selects the policies of a checkpoint, and completes their ids and spaces.

Spaces are those of the caller, the config or the environment.

Checkpoints before Ray 1.8 have no spaces, but the name of their environment. The spaces of common
environments are in a table, which a test compares with gymnasium 1.x, so that gymnasium need not be
installed or imported. Any other environment is created to read its spaces.
"""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from packaging.version import Version

from rllib_compat.conversion.given import Given
from rllib_compat.conversion.known_spaces import EnvSpaces, known_spaces
from rllib_compat.formats.layouts.policies import class_name
from rllib_compat.networks.observations import ATARI_FRAME, ATARI_RAM, original_space
from rllib_compat.networks.previous_steps import with_own_observations
from rllib_compat.neutral import spaces
from rllib_compat.neutral.checkpoint import LegacyCheckpoint, PolicyState
from rllib_compat.neutral.errors import CheckpointError, CompatError, MissingInformationError
from rllib_compat.neutral.policy_id import SHARED, PolicyId
from rllib_compat.neutral.report import Finding, Verdict
from rllib_compat.neutral.spaces import INTEGERS, Box, MultiBinary, Space, parse_repr
from rllib_compat.ray_versions import tune
from rllib_compat.registry import keys
from rllib_compat.runtime.atari import is_atari_name

#: The id of a single policy in Ray 0.5, and in all later Rays.
_OLD_ID, _ONLY_ID = "default", PolicyId("default_policy")
#: The largest number of dimensions whose bounds are listed in messages.
_FEW = 8

#: A policy's id → its old ids, which callers may use, too.
_OLD_IDS = {"default_policy": ("default",)}


def select_policies(checkpoint: LegacyCheckpoint, names: Sequence[str]) -> LegacyCheckpoint:
    """Selects policies by their old or new ids (empty: all), with a row for those that are dropped.

    All get their new ids.

    Raises:
        MissingInformationError: There is no policy with one of these ids.
    """
    checkpoint = _with_todays_ids(checkpoint)
    if not names:
        return checkpoint
    policies = checkpoint.policies
    by_name = {**{p.old_id: p for p in policies.values()}, **policies}
    if unknown := [name for name in names if name not in by_name]:
        raise MissingInformationError(
            f"The checkpoint has no policy {', '.join(map(repr, unknown))}.",
            where=str(checkpoint.source.path),
            fix=f"Pass one of its policies: {', '.join(policies)}.",
        )
    wanted = {by_name[name].policy_id for name in names}
    checkpoint = checkpoint.with_policies(p for k, p in policies.items() if k in wanted)
    left = ", ".join(policy_id for policy_id in policies if policy_id not in wanted)
    message = f"not asked for: {left}"
    dropped = Finding.info("policies", Verdict.DROPPED, "policies", message)
    return checkpoint.with_findings([dropped] if left else [])


def _with_todays_ids(checkpoint: LegacyCheckpoint) -> LegacyCheckpoint:
    """Renames a single policy to its current id."""
    if set(checkpoint.policies) == {_OLD_ID}:
        return _renamed(checkpoint, _ONLY_ID, f"the only policy is called {_ONLY_ID} since Ray 0.6")
    if set(checkpoint.policies) == {_ONLY_ID} and _wants_shared(checkpoint.config):
        return _renamed(checkpoint, SHARED, "the policy of all agents, as the trainer calls it")
    return checkpoint


def _wants_shared(config: Mapping[str, Any]) -> bool:
    """Whether a config has the Trainer's default policy for all agents."""
    several = config.get("multiagent")
    policies = several.get("policies") if isinstance(several, Mapping) else None
    return isinstance(policies, Mapping) and set(policies) == {SHARED}


def _renamed(checkpoint: LegacyCheckpoint, name: PolicyId, why: str) -> LegacyCheckpoint:
    (only,) = checkpoint.policies.values()
    where = f"policies.{only.policy_id}"
    finding = Finding.info("policy-id", Verdict.RENAMED, where, why)
    only = replace(only, policy_id=name)
    return checkpoint.with_policies([only]).with_findings([finding])


def complete_policies(checkpoint: LegacyCheckpoint, given: Given) -> LegacyCheckpoint:
    """Completes the spaces and filters of policies.

    A policy may still lack a space afterwards.
    """
    return _with_filters(_with_spaces(checkpoint, given))


def _with_filters(checkpoint: LegacyCheckpoint) -> LegacyCheckpoint:
    """Sets the filters' epsilon and integer type to those of their Ray.

    Since Ray 1.10, filters add more to each deviation, and return the type of their input. Layouts
    1.0 and later are of Ray 2.1 and later. States of the new connectors have the type themselves.
    """
    ray, layout = checkpoint.source.ray_version, checkpoint.source.layout
    late = layout.startswith(("1.", "2.")) if ray is None else Version(ray) >= Version("1.10")
    if not late:
        return checkpoint
    return checkpoint.with_policies(map(_with_late_filter, checkpoint.policies.values()))


def _with_late_filter(policy: PolicyState) -> PolicyState:
    old = policy.observation_filter
    if old is None:
        return policy
    kind = old.integers if policy.is_module else _integers(policy.observation_space)
    return replace(policy, observation_filter=replace(old, epsilon=1e-6, integers=kind))


def _integers(space: Space | None) -> str | None:
    """Returns the integer type of a filter's observations; None: they were floats.

    Tuple, Dict and discrete observations, and Atari's, were floats before the filter.
    """
    space = original_space(space)
    if isinstance(space, MultiBinary):
        return "int8"
    if not isinstance(space, Box) or space.shape in (ATARI_FRAME, ATARI_RAM):
        return None
    return space.dtype if space.dtype in INTEGERS else None


def _with_spaces(checkpoint: LegacyCheckpoint, given: Given) -> LegacyCheckpoint:
    """Adds spaces from the caller, the config and the environment."""
    specs = {str(k): spec for k, spec in keys.policies_of(checkpoint.config).items()}
    policies = [_with_spec(p, specs.get(p.policy_id)) for p in checkpoint.policies.values()]
    env_config = given.overrides.get("env_config") or {}
    of_env = _spaces_of_env(_env_to_read(checkpoint, given), checkpoint, env_config, policies)
    findings: list[Finding] = []

    def choose(policy: PolicyState, kind: str, by_policy: Mapping[str | None, Space]) -> Any:
        known: Space | None = getattr(policy, kind)
        theirs: Space | None = getattr(of_env, kind, None)
        given_space = _given_space(policy.policy_id, by_policy)
        path = f"policies.{policy.policy_id}.{kind}"
        source = f"taken from the environment {_env_name(checkpoint.config.get('env'))}"
        if given_space is not None and theirs is not None and _gives_bounds(theirs, given_space):
            # Old gym printed Box(1,) without bounds, and users copy that.
            findings.append(Finding.info("derived", Verdict.DERIVED, path, f"its bounds: {source}"))
            return theirs
        if given_space is None and known is None and theirs is not None:
            findings.append(Finding.info("derived", Verdict.DERIVED, path, source))
            return theirs
        chosen = known if given_space is None else given_space
        if theirs is not None and chosen is not None:
            if kind == "action_space":
                findings.extend(_contradiction(path, theirs, chosen))
            else:
                own = with_own_observations(replace(policy, observation_space=chosen))
                _require_same_observations(path, theirs, own.observation_space or chosen)
        return chosen

    found = [
        replace(
            policy,
            observation_space=choose(policy, "observation_space", given.observation_spaces),
            action_space=choose(policy, "action_space", given.action_spaces),
        )
        for policy in policies
    ]
    return checkpoint.with_policies(found).with_findings(findings)


def _contradiction(path: str, of_env: Space, chosen: Space) -> list[Finding]:
    """Returns a warning if an environment has other actions than the checkpoint."""
    if _same_actions(of_env, chosen):
        return []
    finding = Finding.warning(
        "bounds",
        Verdict.NOTE,
        path,
        f"the environment has {_with_bounds(of_env)}, and the policy {_with_bounds(chosen)}: "
        "its actions have another meaning in this environment",
        "pass the environment of the training (--env), or its --action-space",
    )
    return [finding]


def _require_same_observations(path: str, of_env: Space, chosen: Space) -> None:
    """Checks that an environment's observations fit a network."""
    takes = original_space(chosen)
    if not isinstance(of_env, spaces.Box) or not isinstance(takes, spaces.Box):
        return
    if of_env.shape == ATARI_FRAME:  # which RLlib resized
        return
    if of_env.flat_size() not in (chosen.flat_size(), takes.flat_size()):
        raise CheckpointError(
            f"The environment has observations of {of_env}, and the policy of {takes}.",
            where=path,
            fix="Pass the environment of the training, with its wrappers: --env.",
        )


def _same_actions(one: Space, other: Space) -> bool:
    if not (isinstance(one, spaces.Box) and isinstance(other, spaces.Box)):
        return one == other
    sides = ((one.low, other.low), (one.high, other.high))
    return one.shape == other.shape and all(np.allclose(*side) for side in sides)


def _with_bounds(space: Space) -> str:
    """Describes a space, with the bounds of each dimension if there are few."""
    if isinstance(space, spaces.Box) and 1 < space.flat_size() <= _FEW:
        low, high = (", ".join(f"{x:g}" for x in side.flat) for side in (space.low, space.high))
        return f"Box([{low}], [{high}], {space.shape})"
    return str(space)


def _given_space(policy_id: str, by_policy: Mapping[str | None, Space]) -> Space | None:
    names = (policy_id, *_OLD_IDS.get(policy_id, ()), None)
    return next((by_policy[name] for name in names if name in by_policy), None)


def _gives_bounds(known: Space, given_space: Space) -> bool:
    """Whether a space equals the given one except for bounds that the given one lacks."""
    if not (isinstance(known, spaces.Box) and isinstance(given_space, spaces.Box)):
        return False
    unbounded = not (np.isfinite(given_space.low).any() or np.isfinite(given_space.high).any())
    bounded = bool(np.isfinite(known.low).all())
    return known.shape == given_space.shape and (unbounded or not given_space.exact) and bounded


def _with_spec(policy: PolicyState, spec: object) -> PolicyState:
    """Adds class and spaces of a policy's tuple in the config; they may be text (params.json)."""
    if not isinstance(spec, (list, tuple)) or len(spec) < 3:
        return policy
    config = spec[3] if len(spec) > 3 and isinstance(spec[3], Mapping) else {}
    return replace(
        policy,
        observation_space=policy.observation_space or _read(spec[1]),
        action_space=policy.action_space or _read(spec[2]),
        config=policy.config or config,
        policy_class=policy.policy_class or class_name(spec[0]),
    )


def _read(value: object) -> Space | None:
    return parse_repr(value) if isinstance(value, str) else spaces.from_object(value)


def _env_to_read(checkpoint: LegacyCheckpoint, given: Given) -> Any:
    """Returns the environment whose spaces to read; the file's only if its name imports nothing."""
    if given.env is not None:
        return given.env
    name = checkpoint.config.get("env")
    if not isinstance(name, str) or all(
        p.observation_space and p.action_space for p in checkpoint.policies.values()
    ):
        return None  # all spaces are known
    if known_spaces(name) is not None:
        return name
    from rllib_compat.config.values.kinds import is_plain_env_name

    return name if is_plain_env_name(name) else None


def _env_name(env: object) -> str:
    """Describes an environment for a report."""
    return f"{env!r} as gymnasium has it" if isinstance(env, str) else getattr(env, "__name__", "")


def _spaces_of_env(
    env: object,
    checkpoint: LegacyCheckpoint,
    env_config: Mapping[str, Any],
    policies: Sequence[PolicyState],
) -> EnvSpaces | None:
    """Returns the spaces of a single-agent environment: the caller's, or gymnasium's by name."""
    if env is None or [p.policy_id for p in policies] != ["default_policy"]:
        return None
    if all(p.observation_space and p.action_space for p in policies):
        with contextlib.suppress(Exception):  # only for a comparison; training raises the error
            return _read_env(env, checkpoint, env_config)
        return None
    return _read_env(env, checkpoint, env_config)


def _read_env(
    env: Any, checkpoint: LegacyCheckpoint, env_config: Mapping[str, Any]
) -> EnvSpaces | None:
    """Creates an environment with its Ray's wrappers, and returns its spaces."""
    if callable(env) or tune.is_registered_env(env):
        return _read_wrapped_env(env, checkpoint, env_config)
    known = known_spaces(env)
    # An environment that the user registered by a known name needs an imported gymnasium.
    if known is not None and not sys.modules.get("gymnasium"):
        return known
    try:
        import gymnasium

        from rllib_compat.runtime.envs import find_creator, resolve_env_name
    except ModuleNotFoundError:  # reading needs neither gymnasium nor Ray
        return known
    try:
        with warnings.catch_warnings():  # such as that the environment's version is outdated
            warnings.simplefilter("ignore")
            if is_atari_name(env) and find_creator(env, trusted=False) is not None:
                return _read_wrapped_env(env, checkpoint, env_config)
            return _spaces_of(gymnasium.make(resolve_env_name(env)[0]))
    except (gymnasium.error.Error, ImportError, AttributeError, ValueError, TypeError):
        return known  # gymnasium lists environments whose packages are not installed


def _read_wrapped_env(
    env: object, checkpoint: LegacyCheckpoint, env_config: Mapping[str, Any]
) -> EnvSpaces | None:
    from rllib_compat.conversion.config import make_env_settings
    from rllib_compat.runtime.envs import make_env

    settings = make_env_settings(env, checkpoint)
    try:
        made = make_env(settings, dict(env_config))
    except CompatError:
        raise
    except Exception as error:  # any error of the environment
        raise CheckpointError(
            f"The environment cannot be created: {type(error).__name__}: {error}"[:1000],
            where="env",
            fix="Correct the error, or pass --observation-space and --action-space instead.",
        ) from error
    return _spaces_of(made)


def _spaces_of(env: Any) -> EnvSpaces | None:
    observation = spaces.from_object(env.observation_space)
    action = spaces.from_object(env.action_space)
    env.close()
    return None if observation is None or action is None else EnvSpaces(observation, action)
