"""The environment of a converted checkpoint: the old one, or a placeholder with its spaces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rllib_compat import ray_versions, registry
from rllib_compat.config import Origin
from rllib_compat.config.border import admit
from rllib_compat.config.values.environments import EnvName
from rllib_compat.conversion import stored_env
from rllib_compat.conversion.find_spaces import SINGLE_AGENT_IDS
from rllib_compat.conversion.given import Given
from rllib_compat.conversion.prepared import Prepared
from rllib_compat.neutral.checkpoint import LegacyCheckpoint
from rllib_compat.neutral.records import GlobalRef
from rllib_compat.neutral.report import Finding, Severity, Verdict


def step(prepared: Prepared, checkpoint: LegacyCheckpoint, given: Given) -> Prepared:
    """Puts a placeholder where this machine has not got the checkpoint's environment.

    A placeholder makes the environment as soon as its name is known, then or later; until then it
    only has the spaces. A name of the checkpoint is looked up among those that are registered, and
    never imported.
    """
    from rllib_compat.runtime.envs import find_creator
    from rllib_compat.runtime.placeholders import placeholder_env, placeholder_multi_agent_env

    stored = stored_env.read(prepared.config, checkpoint.algorithm)
    if stored is not None:
        named = {"env": stored.name, "env_config": stored.env_config}
        prepared = replace(prepared, config={**prepared.config, **named})
    env = prepared.config.get("env")
    if given.env is not None:
        prepared = prepared.without("env").put(env=given.env)
        if not isinstance(given.env, str) or find_creator(given.env) is not None:
            return prepared
        env = given.env
    elif _is_trusted(env, given):
        return prepared
    elif is_plain(env) and find_creator(env, trusted=False):
        return prepared if ray_versions.is_registered_env(env) else _without_paths(prepared)
    name = env if isinstance(env, str) else getattr(env, "label", None)
    env_config = _admitted_env_config(prepared, checkpoint)
    known = {
        policy_id: (policy.observation_space, policy.action_space)
        for policy_id, policy in checkpoint.policies.items()
        if policy.observation_space is not None and policy.action_space is not None
    }
    if set(known) <= set(SINGLE_AGENT_IDS):
        ((observation, action),) = known.values()
        cls, env_config = placeholder_env(name, observation, action, env_config)
    else:
        cls, env_config = placeholder_multi_agent_env(name, known, env_config)
    prepared = prepared.without("env", "env_config", "disable_env_checking")
    return prepared.put(env=cls, env_config=env_config, disable_env_checking=True).told(_told(name))


def _without_paths(prepared: Prepared) -> Prepared:
    """Without text in the file's `env_config` that an environment of gymnasium would open."""
    from rllib_compat.runtime.envs import without_paths

    told = prepared.config.get("env_config")
    if not isinstance(told, Mapping) or "env_config" in prepared.ours:
        return prepared
    kept = without_paths({str(key): value for key, value in told.items()})
    findings = [
        Finding(
            "environment",
            Severity.WARNING,
            Verdict.DROPPED,
            f"config.env_config.{key}"[:300],
            "it could be the name of a file, and environments of gymnasium open such files",
            "if it is right, say so: rllib_compat.load(OLD, env_config={…})",
        )
        for key in told
        if str(key) not in kept
    ]
    if not findings:
        return prepared
    config = {**prepared.config, "env_config": kept}
    return replace(prepared, config=config).told(*findings)


def is_plain(env: Any) -> bool:
    """Whether an environment is a name that nothing could be imported from."""
    return isinstance(env, str) and EnvName.plain(env)


def _is_trusted(env: Any, given: Given) -> bool:
    text = env.qualified if isinstance(env, GlobalRef) else env
    trusted = {name.replace(":", ".") for name in given.trust}
    return isinstance(text, str) and text.replace(":", ".") in trusted


def _admitted_env_config(prepared: Prepared, checkpoint: LegacyCheckpoint) -> dict[str, Any]:
    """What of the file's `env_config` may go on."""
    algorithm = registry.of(checkpoint.algorithm)
    told = {key: value for key, value in prepared.config.items() if key == "env_config"}
    admitted = admit(told, (algorithm.name, algorithm.becomes), Origin.FILE).config
    env_config = admitted.get("env_config")
    return dict(env_config) if isinstance(env_config, Mapping) else {}


def _told(name: str | None) -> Finding:
    return Finding(
        "environment",
        Severity.WARNING,
        Verdict.DERIVED,
        "config.env",
        f"the environment {name!r} is not known on this machine; the checkpoint loads, and "
        "has its spaces"
        if name
        else "the checkpoint does not name its environment; it loads, and has the spaces",
        f"before training goes on: ray.tune.register_env({name!r}, lambda config: MyEnv(config)), "
        "in each program that loads it"
        if name
        else "give it with --env, or to train on: rllib_compat.load(NEW, env=MyEnv)",
    )
