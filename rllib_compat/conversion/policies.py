"""The policies of a checkpoint: which are wanted, their new ids, and their spaces.

Spaces are taken from whoever knows them: the caller, the config, the environment.

Checkpoints before Ray 1.8 hold no spaces, but the name of their environment. For the environments
that nearly everybody tries first there is a table, which a test compares with gymnasium 1.x: so
such a checkpoint can be read where gymnasium is not installed, and its import is spared where it
is. All other environments are asked themselves.
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

#: What Ray 0.5 called the only policy, and what every later Ray calls it.
_OLD_ID, _ONLY_ID = "default", PolicyId("default_policy")
#: Up to how many dimensions have their bounds listed one by one.
_FEW = 8

#: What a policy was called before; callers may use either name.
_OLD_IDS = {"default_policy": ("default",)}


def select_policies(checkpoint: LegacyCheckpoint, names: Sequence[str]) -> LegacyCheckpoint:
    """The checkpoint with the policies that are wanted, under their new ids.

    Args:
        checkpoint: The checkpoint.
        names: The policies' ids, old or new; none: all of them.

    Raises:
        MissingInformationError: There is no policy of such a name.
    """
    return _selected(_with_todays_ids(checkpoint), names)


def _with_todays_ids(checkpoint: LegacyCheckpoint) -> LegacyCheckpoint:
    """The checkpoint with today's name of the only policy."""
    if set(checkpoint.policies) == {_OLD_ID}:
        return _renamed(checkpoint, _ONLY_ID, f"the only policy is called {_ONLY_ID} since Ray 0.6")
    if set(checkpoint.policies) == {_ONLY_ID} and _wants_shared(checkpoint.config):
        return _renamed(checkpoint, SHARED, "the policy of all agents, as the trainer calls it")
    return checkpoint


def _wants_shared(config: Mapping[str, Any]) -> bool:
    """Whether a Trainer gave a config its one policy for many agents."""
    several = config.get("multiagent")
    policies = several.get("policies") if isinstance(several, Mapping) else None
    return isinstance(policies, Mapping) and set(policies) == {SHARED}


def _renamed(checkpoint: LegacyCheckpoint, name: PolicyId, why: str) -> LegacyCheckpoint:
    (only,) = checkpoint.policies.values()
    where = f"policies.{only.policy_id}"
    finding = Finding.info("policy-id", Verdict.RENAMED, where, why)
    only = replace(only, policy_id=name)
    return checkpoint.with_policies([only]).with_findings([finding])


def _selected(checkpoint: LegacyCheckpoint, names: Sequence[str]) -> LegacyCheckpoint:
    """With the policies that the caller wants, and a row for those that are left out.

    Raises:
        MissingInformationError: There is no policy of that name.
    """
    policies = checkpoint.policies
    if names:
        by_name = {**{p.old_id: p for p in policies.values()}, **policies}
        if unknown := [name for name in names if name not in by_name]:
            raise MissingInformationError(
                f"The checkpoint has no policy {', '.join(map(repr, unknown))}.",
                where=str(checkpoint.source.path),
                fix=f"It has {', '.join(policies)}.",
            )
        wanted = {by_name[name].policy_id for name in names}
        checkpoint = checkpoint.with_policies(p for k, p in policies.items() if k in wanted)
        left = ", ".join(policy_id for policy_id in policies if policy_id not in wanted)
        if left:
            finding = Finding.info(
                "policies", Verdict.DROPPED, "policies", f"not asked for: {left}"
            )
            checkpoint = checkpoint.with_findings([finding])
    return checkpoint


def complete_policies(checkpoint: LegacyCheckpoint, given: Given) -> LegacyCheckpoint:
    """The checkpoint with what its policies lack: the spaces that can be found, mostly.

    A policy may still lack a space afterwards.

    Raises:
        CheckpointError: The environment gives observations that a network can't take.
    """
    return _with_filters(_with_spaces(checkpoint, given))


def _with_filters(checkpoint: LegacyCheckpoint) -> LegacyCheckpoint:
    """Filters compute what those of their Ray did.

    Since Ray 1.10 they add more to each deviation, and give numbers of the type that they take.
    Layouts 1.0 and later are all of Ray 2.1 and later, whether they name their Ray or not; those of
    the new connectors know themselves what they cut to.
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
    """The type of integers that observations were when a filter saw them.

    Those of several parts, choices, and what Atari's simulator gives, were floats by then.
    """
    space = original_space(space)
    if isinstance(space, MultiBinary):
        return "int8"
    if not isinstance(space, Box) or space.shape in (ATARI_FRAME, ATARI_RAM):
        return None
    return space.dtype if space.dtype in INTEGERS else None


def _with_spaces(checkpoint: LegacyCheckpoint, given: Given) -> LegacyCheckpoint:
    """Adds the spaces that can be found."""
    specs = _policy_specs(checkpoint.config)
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
            # Old gym printed Box(1,) whatever the bounds were, and people copy that.
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
    """A warning where an environment wants other actions than those of the checkpoint."""
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
    """Refuses an environment whose observations a network can't take.

    Raises:
        CheckpointError: It gives vectors or images of another size.
    """
    takes = original_space(chosen)
    if not isinstance(of_env, spaces.Box) or not isinstance(takes, spaces.Box):
        return
    if of_env.shape == ATARI_FRAME:  # which RLlib itself scaled
        return
    if of_env.flat_size() not in (chosen.flat_size(), takes.flat_size()):
        raise CheckpointError(
            f"The environment gives observations of {of_env}, and the policy takes {takes}.",
            where=path,
            fix="give the environment that it was trained in, with the wrappers around it: --env",
        )


def _same_actions(one: Space, other: Space) -> bool:
    if not (isinstance(one, spaces.Box) and isinstance(other, spaces.Box)):
        return one == other
    sides = ((one.low, other.low), (one.high, other.high))
    return one.shape == other.shape and all(np.allclose(*side) for side in sides)


def _with_bounds(space: Space) -> str:
    """A space with the bounds of each dimension, as long as those are few."""
    if isinstance(space, spaces.Box) and 1 < space.flat_size() <= _FEW:
        low, high = (", ".join(f"{x:g}" for x in side.flat) for side in (space.low, space.high))
        return f"Box([{low}], [{high}], {space.shape})"
    return str(space)


def _given_space(policy_id: str, by_policy: Mapping[str | None, Space]) -> Space | None:
    names = (policy_id, *_OLD_IDS.get(policy_id, ()), None)
    return next((by_policy[name] for name in names if name in by_policy), None)


def _gives_bounds(known: Space, given_space: Space) -> bool:
    """Whether a space is the given one, with bounds where that has none of its own."""
    if not (isinstance(known, spaces.Box) and isinstance(given_space, spaces.Box)):
        return False
    unbounded = not (np.isfinite(given_space.low).any() or np.isfinite(given_space.high).any())
    bounded = bool(np.isfinite(known.low).all())
    return known.shape == given_space.shape and (unbounded or not given_space.exact) and bounded


def _policy_specs(config: Mapping[str, Any]) -> dict[str, Any]:
    """What `multiagent.policies` says of each policy."""
    return {str(k): spec for k, spec in keys.policies_of(config).items()}


def _with_spec(policy: PolicyState, spec: object) -> PolicyState:
    """With class and spaces of a policy's tuple in the config, live or as text (params.json)."""
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
    """The environment; one of the file only if it is a name that nothing could be imported from."""
    if given.env is not None:
        return given.env
    name = checkpoint.config.get("env")
    if not isinstance(name, str) or all(
        p.observation_space and p.action_space for p in checkpoint.policies.values()
    ):
        return None  # there is nothing to ask it
    if known_spaces(name) is not None:
        return name
    from rllib_compat.config.values.kinds import is_plain_env_name

    return name if is_plain_env_name(name) else None


def _env_name(env: object) -> str:
    """An environment in a report: gymnasium has what is called by a name."""
    return f"{env!r} as gymnasium has it" if isinstance(env, str) else getattr(env, "__name__", "")


def _spaces_of_env(
    env: object,
    checkpoint: LegacyCheckpoint,
    env_config: Mapping[str, Any],
    policies: Sequence[PolicyState],
) -> EnvSpaces | None:
    """The spaces of a single-agent environment: the caller's own, or gymnasium's by its name."""
    if env is None or [p.policy_id for p in policies] != ["default_policy"]:
        return None
    if all(p.observation_space and p.action_space for p in policies):
        with contextlib.suppress(Exception):  # only to compare: whoever trains sees what it raises
            return _read_env(env, checkpoint, env_config)
        return None
    return _read_env(env, checkpoint, env_config)


def _read_env(
    env: Any, checkpoint: LegacyCheckpoint, env_config: Mapping[str, Any]
) -> EnvSpaces | None:
    """The spaces that an environment has once it is made, in the wrappers of its Ray."""
    if callable(env) or tune.is_registered_env(env):
        return _read_wrapped_env(env, checkpoint, env_config)
    known = known_spaces(env)
    # Whoever registered an environment under a known name has imported gymnasium to do so.
    if known is not None and not sys.modules.get("gymnasium"):
        return known
    try:
        import gymnasium

        from rllib_compat.runtime.envs import find_creator, resolve_env_name
    except ModuleNotFoundError:  # reading needs neither; what is not known here is asked for
        return known
    try:
        with warnings.catch_warnings():  # an old version of an environment is what is asked for
            warnings.simplefilter("ignore")
            if is_atari_name(env) and find_creator(env, trusted=False) is not None:
                return _read_wrapped_env(env, checkpoint, env_config)
            return _spaces_of(gymnasium.make(resolve_env_name(env)[0]))
    except (gymnasium.error.Error, ImportError, AttributeError, ValueError, TypeError):
        return known  # gymnasium lists environments whose packages are not installed


def _read_wrapped_env(
    env: object, checkpoint: LegacyCheckpoint, env_config: Mapping[str, Any]
) -> EnvSpaces | None:
    from rllib_compat.conversion.environment import make_env_settings
    from rllib_compat.runtime.envs import make_env

    settings = make_env_settings(env, checkpoint)
    try:
        made = make_env(settings, dict(env_config))
    except CompatError:
        raise
    except Exception as error:  # whatever the environment does
        raise CheckpointError(
            f"The environment cannot be created: {type(error).__name__}: {error}"[:1000],
            where="env",
            fix="correct the error, or pass --observation-space and --action-space instead",
        ) from error
    return _spaces_of(made)


def _spaces_of(env: Any) -> EnvSpaces | None:
    observation = spaces.from_object(env.observation_space)
    action = spaces.from_object(env.action_space)
    env.close()
    return None if observation is None or action is None else EnvSpaces(observation, action)
