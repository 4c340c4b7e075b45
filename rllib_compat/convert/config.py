"""The legacy config of a checkpoint, as the translation takes it.

A checkpoint of Ray 2.1 and later holds the whole config, defaults included. Only what differs
from the defaults of that Ray was anybody's choice; the rest is told in one line. The policies are
those that the checkpoint really has, with the spaces that were found for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from rllib_compat import registry
from rllib_compat.config import Translation, default_config, translate
from rllib_compat.convert.find_spaces import SINGLE_AGENT_IDS
from rllib_compat.neutral import spaces
from rllib_compat.neutral.checkpoint import LegacyCheckpoint
from rllib_compat.neutral.records import GlobalRef, StandIn, is_stand_in
from rllib_compat.neutral.report import Finding, Severity, Verdict
from rllib_compat.runtime.policy_mapping import PolicyOfSameName

Config: TypeAlias = "dict[str, Any]"
Findings: TypeAlias = "list[Finding]"

_NO_VALUE = object()

#: Where the policies were told, by era: a dict of their own, or attributes of the config object.
_MULTI_AGENT_KEYS = ("multiagent", "policies", "policy_mapping_fn", "policies_to_train")


def config_for_target(checkpoint: LegacyCheckpoint) -> tuple[Translation, list[Finding]]:
    """Translates the checkpoint's config for the installed Ray.

    Returns:
        The translation with its own report, and what was done to the config before it.
    """
    assert checkpoint.algorithm is not None
    config = dict(checkpoint.config)
    findings: list[Finding] = []
    for step in (_chosen, _without_attention, _with_policies, _with_env, _without_recordings):
        config, found = step(checkpoint, config)
        findings += found
    translation = translate(
        config,
        algorithm=checkpoint.algorithm,
        legacy_ray=checkpoint.source.ray_version,
        on_unknown="warn",
    )
    return translation, findings


def _without_recordings(checkpoint: LegacyCheckpoint, config: Config) -> tuple[Config, Findings]:
    """Takes out where recorded steps were read from, and the spaces that follow from it.

    Ray reads it as soon as a checkpoint is loaded; then the files would have to be where they
    were, in a form that today's readers know.
    """
    found = {key: config[key] for key in ("input", "input_") if key in config}
    told = [value for value in found.values() if value not in (None, "", "sampler")]
    if not told or not registry.of(checkpoint.algorithm).offline:
        return config, []
    finding = Finding(
        "offline-data",
        Severity.WARNING,
        Verdict.RESET,
        "config.input",
        f"training read recorded steps from {told[0]!r}; the checkpoint loads without them",
        "to train on: config = algorithm.config.copy(copy_frozen=False); "
        "config.offline_data(input_=as_parquet(…), input_read_method='read_parquet', "
        "input_read_episodes=True); new = config.build_algo(); new.restore_from_path(…). "
        "as_parquet is in rllib_compat.runtime.offline.inputs, and reads old JSON files",
    )
    return {key: value for key, value in config.items() if key not in found}, [finding]


def _without_attention(_: LegacyCheckpoint, config: Config) -> tuple[Config, Findings]:
    """The `model` part without an attention net, which only today's old API stack knows as a key.

    The modules of a converted checkpoint have it themselves.
    """
    model = config.get("model")
    if not isinstance(model, Mapping) or not model.get("use_attention"):
        return config, []
    kept = {k: v for k, v in model.items() if k != "use_attention" and k[:10] != "attention_"}
    finding = Finding(
        "attention",
        Severity.INFO,
        Verdict.CONVERTED,
        "config.model.use_attention",
        f"{len(model) - len(kept)} keys became part of the modules",
    )
    return {**config, "model": kept}, [finding]


def _with_env(checkpoint: LegacyCheckpoint, config: Config) -> tuple[Config, Findings]:
    """An environment by name, where this machine has not got the checkpoint's.

    It is made when the name is known, then or later; until then it only has the spaces.
    """
    from rllib_compat.runtime.envs import find_creator
    from rllib_compat.runtime.placeholders import placeholder_env, placeholder_multi_agent_env

    env = config.get("env")
    name = env if isinstance(env, str) else getattr(env, "label", None)
    # A name that could import anything is a record by now, unless the caller gave it.
    if isinstance(env, str) and find_creator(env) is not None:
        return config, []
    env_config = config.get("env_config")
    env_config = dict(env_config) if isinstance(env_config, Mapping) else {}
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
    finding = Finding(
        "environment",
        Severity.WARNING,
        Verdict.DERIVED,
        "config.env",
        f"the environment {name!r} is not known on this machine; the checkpoint loads, and "
        "has its spaces"
        if name
        else "the checkpoint does not tell its environment; it loads, and has the spaces",
        f"call ray.tune.register_env({name!r}, …) before training goes on"
        if name
        else "give it with --env, or as config.environment(env=…) before training goes on",
    )
    placeholder = {"env": cls, "env_config": env_config, "disable_env_checking": True}
    return {**config, **placeholder}, [finding]


def _chosen(checkpoint: LegacyCheckpoint, config: Config) -> tuple[Config, Findings]:
    """Of a config with defaults in it: what differs from those of the Ray that wrote it."""
    if not checkpoint.config_is_complete:
        return config, []
    legacy_ray = checkpoint.source.ray_version
    defaults = default_config(checkpoint.algorithm or "PPO", legacy_ray or "2.10.0")
    chosen = {k: v for k, v in _differences(config, defaults).items() if not _is_rays_own(v)}
    finding = Finding(
        "config",
        Severity.INFO,
        Verdict.NOTE,
        "config",
        f"{len(config) - len(chosen)} of {len(config)} keys have the default of Ray "
        f"{legacy_ray}, or name classes of Ray itself; {len(chosen)} were chosen and are "
        "translated",
    )
    return chosen, [finding]


def _is_rays_own(value: Any) -> bool:
    """Whether a value names only classes of RLlib: whichever Ray loads it has its own."""
    if isinstance(value, Mapping):
        return bool(value) and all(map(_is_rays_own, value.values()))
    if isinstance(value, (list, tuple)):
        return bool(value) and all(map(_is_rays_own, value))
    return isinstance(value, (GlobalRef, StandIn)) and value.qualified.startswith("ray.rllib.")


def _differences(config: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    different = {}
    for key, value in config.items():
        default = defaults.get(key, _NO_VALUE)
        if isinstance(value, Mapping) and isinstance(default, Mapping):
            inner = _differences(value, default)
            if inner:
                different[key] = inner
        elif not _same(value, default):
            different[key] = value
    return different


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(_same(x, y) for x, y in zip(a, b, strict=True))
    return type(a) is type(b) and bool(a == b)


def _with_policies(checkpoint: LegacyCheckpoint, config: Config) -> tuple[Config, Findings]:
    """With a `multiagent` part of the policies that the checkpoint has, in place of any other."""
    config = {key: value for key, value in config.items() if key not in _MULTI_AGENT_KEYS}
    if set(checkpoint.policies) <= set(SINGLE_AGENT_IDS):
        return config, []
    policies = {}
    for policy_id, policy in checkpoint.policies.items():
        assert policy.observation_space is not None
        assert policy.action_space is not None
        overrides = {k: v for k, v in _own(checkpoint, policy.config).items() if k != "model"}
        policies[policy_id] = (
            None,
            spaces.to_gymnasium(policy.observation_space),
            spaces.to_gymnasium(policy.action_space),
            overrides,
        )
    part: dict[str, Any] = {
        "policies": policies,
        "policy_mapping_fn": PolicyOfSameName(tuple(policies)),
    }
    finding = Finding(
        "policy-mapping",
        Severity.WARNING,
        Verdict.RESET,
        "policy_mapping_fn",
        "the mapping function is code and was not executed; an agent now gets the policy of "
        "its own name",
        "give it again before training goes on: config.multi_agent(policy_mapping_fn=…)",
    )
    if isinstance(checkpoint.policies_to_train, (list, tuple, set)):
        part["policies_to_train"] = [str(p) for p in checkpoint.policies_to_train]
    return {**config, "multiagent": part}, [finding]


def _own(checkpoint: LegacyCheckpoint, config: Mapping[str, Any]) -> dict[str, Any]:
    """What a policy overrides; Ray 2.1 and later stored the whole config for each."""
    return {
        key: value
        for key, value in config.items()
        if not is_stand_in(value) and not _same(value, checkpoint.config.get(key, _NO_VALUE))
    }
