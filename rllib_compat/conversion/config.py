"""The legacy config of a checkpoint, as the translation takes it.

A checkpoint of Ray 2.1 and later holds the whole config, defaults included. Only what differs
from the defaults of that Ray was anybody's choice; the rest is told in one line. The policies are
those that the checkpoint really has, with the spaces that were found for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rllib_compat import ray_versions, registry
from rllib_compat.config import Origin, Translation, default_config, translate
from rllib_compat.config import keys as table
from rllib_compat.conversion import config_env, config_machine, config_policies, stored_env
from rllib_compat.conversion.differences import differences
from rllib_compat.conversion.given import Given
from rllib_compat.conversion.prepared import Prepared
from rllib_compat.neutral.checkpoint import LegacyCheckpoint
from rllib_compat.neutral.records import GlobalRef, StandIn
from rllib_compat.neutral.report import Finding, Severity, Verdict

#: Where the config of SAC says the layers of its critics, and where those of its policy.
_CRITIC_AND_ACTOR = (("Q_model", "policy_model"), ("q_model_config", "policy_model_config"))


def config_for_target(
    checkpoint: LegacyCheckpoint, given: Given
) -> tuple[Translation, tuple[Finding, ...]]:
    """Translates the checkpoint's config for the installed Ray.

    Returns:
        The translation with its own report, and what was done to the config before and after it.
    """
    assert checkpoint.algorithm is not None
    prepared = Prepared(checkpoint.config, {})
    for step in (
        _chosen,
        _without_attention,
        _without_its_model,
        _without_shapes_of_critics,
        config_policies.step,
        config_env.step,
        _without_recordings,
        _with_overrides,
    ):
        prepared = step(prepared, checkpoint, given)
    translation = translate(
        prepared.config,
        algorithm=checkpoint.algorithm,
        legacy_ray=checkpoint.source.ray_version,
        on_unknown="warn",
        origin=Origin.FILE,
        given=prepared.ours,
        trust=given.trust,
    )
    stored = stored_env.read(checkpoint.config, checkpoint.algorithm)
    translation = stored_env.by_name(stored_env.around(translation, stored, given.overrides))
    calls, findings = config_machine.fit(
        translation.calls, given, ray_versions.todays_config(translation.algorithm)
    )
    return replace(translation, calls=calls), (*prepared.findings, *findings)


def _with_overrides(prepared: Prepared, _: LegacyCheckpoint, given: Given) -> Prepared:
    """What the caller adds wins over all that was there; agents are looked at before."""
    own = {key: value for key, value in given.overrides.items() if key != "multiagent"}
    return prepared.without(*own).put(**own)


def _chosen(prepared: Prepared, checkpoint: LegacyCheckpoint, _: Given) -> Prepared:
    """Of a config with defaults in it: what differs from those of the Ray that wrote it."""
    if not checkpoint.config_is_complete:
        return prepared
    config, legacy_ray = prepared.config, checkpoint.source.ray_version
    defaults = default_config(checkpoint.algorithm or "PPO", legacy_ray or "2.10.0")
    chosen = _without_rays_own(differences(config, defaults), checkpoint.algorithm)
    finding = Finding(
        "config",
        Severity.INFO,
        Verdict.NOTE,
        "config",
        f"{len(config) - len(chosen)} of {len(config)} keys have the default of Ray "
        f"{legacy_ray}, or are Ray's own; {len(chosen)} were chosen and are translated",
    )
    return replace(prepared, config=chosen).told(finding)


def _without_rays_own(config: Mapping[str, Any], algorithm: str | None) -> dict[str, Any]:
    """Without what Ray put there for itself, in the configs inside the config, too."""
    chosen = {}
    for key, value in config.items():
        if _is_rays_own(value) or _is_our_own(value) or _is_kept_by_ray(key, value, algorithm):
            continue
        inner = isinstance(value, Mapping) and key == "evaluation_config"
        chosen[key] = _without_rays_own(value, algorithm) if inner else value
    return chosen


def _is_kept_by_ray(key: str, value: Any, algorithm: str | None) -> bool:
    """Whether it is a private key, or the -1 that stood where other algorithms had had a key."""
    if key.startswith(("_AlgorithmConfig__", "__")):
        return True
    owners = {home for home in table.homes(key) if home != "common"}
    return bool(owners) and algorithm not in owners and type(value) is int and value == -1


def _is_rays_own(value: Any) -> bool:
    """Whether a value names only classes of RLlib: whichever Ray loads it has its own."""
    if isinstance(value, Mapping):
        return bool(value) and all(map(_is_rays_own, value.values()))
    if isinstance(value, (list, tuple)):
        return bool(value) and all(map(_is_rays_own, value))
    return isinstance(value, (GlobalRef, StandIn)) and value.qualified.startswith("ray.rllib.")


def _is_our_own(value: Any, deepest: int = 8) -> bool:
    """Whether a value is a function of this package with its arguments: it is made anew.

    What a user's own function among them would have done is lost, and is told.
    """
    if not isinstance(value, StandIn) or value.qualified != "functools.partial" or not deepest:
        return False
    match value.state:
        case (_, tuple() as arguments, dict() as words, _):
            inner = (*value.args, *arguments, *words.values())
        case _:
            return False
    code = [one for one in inner if isinstance(one, (GlobalRef, StandIn))]
    return all(
        one.qualified.startswith("rllib_compat.") or _is_our_own(one, deepest - 1) for one in code
    )


def _without_attention(prepared: Prepared, _: LegacyCheckpoint, __: Given) -> Prepared:
    """The `model` part without an attention net, which only today's old API stack knows as a key.

    The modules of a converted checkpoint have it themselves.
    """
    model = prepared.config.get("model")
    if not isinstance(model, Mapping) or not model.get("use_attention"):
        return prepared
    keys = [key for key in model if str(key).startswith(("use_attention", "attention_"))]
    kept = {key: value for key, value in model.items() if key not in keys}
    finding = Finding(
        "attention",
        Severity.INFO,
        Verdict.CONVERTED,
        "config.model.use_attention",
        f"{len(keys)} keys became part of the modules",
    )
    return replace(prepared, config={**prepared.config, "model": kept}).told(finding)


def _without_its_model(prepared: Prepared, checkpoint: LegacyCheckpoint, given: Given) -> Prepared:
    """The `model` part without a custom model that the modules stand for.

    It is the one that the caller gives as a module, or one that DDPG was told and never asked.
    """
    model = prepared.config.get("model")
    stands = given.model or registry.of(checkpoint.algorithm).reader == "ddpg"
    if not (isinstance(model, Mapping) and model.get("custom_model") and stands):
        return prepared
    kept = {key: value for key, value in model.items() if key != "custom_model"}
    finding = Finding(
        "custom-model",
        Severity.INFO,
        Verdict.CONVERTED,
        "config.model.custom_model",
        f"{given.model} takes its place" if given.model else "its layers are in the modules",
    )
    return replace(prepared, config={**prepared.config, "model": kept}).told(finding)


def _without_shapes_of_critics(
    prepared: Prepared, checkpoint: LegacyCheckpoint, _: Given
) -> Prepared:
    """SAC's config without critics of another shape than the policy's.

    A config of today has one shape for both; the modules of a converted checkpoint have their own.
    RNNSAC's config, which is ours, knows two.
    """
    algorithm = registry.of(checkpoint.algorithm)
    if not algorithm.soft_actor_critic or algorithm.name == "RNNSAC":
        return prepared
    config, told = dict(prepared.config), dict[str, Any]()
    for critic, actor in _CRITIC_AND_ACTOR:
        ours, theirs = config.get(critic), config.get(actor)
        if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
            other = {k: v for k, v in ours.items() if k in theirs and theirs[k] != v}
            config[critic] = {k: v for k, v in ours.items() if k not in other}
            told |= {f"{critic}.{key}": value for key, value in other.items()}
    if not told:
        return prepared
    shapes = ", ".join(f"{key} {value!r}" for key, value in told.items())
    finding = Finding(
        "critics",
        Severity.INFO,
        Verdict.CONVERTED,
        "config.model",
        f"the critics keep their own layers, in their module: {shapes}",
    )
    return replace(prepared, config=config).told(finding)


def _without_recordings(prepared: Prepared, checkpoint: LegacyCheckpoint, given: Given) -> Prepared:
    """Takes out where recorded steps were read from, and the spaces that follow from it.

    Ray reads it as soon as a checkpoint is loaded; then the files would have to be where they
    were, in a form that today's readers know. Without any, Ray loads the checkpoint, and says in
    `train()` that a NoneType has no attribute sample.
    """
    keys = ("input", "input_")
    algorithm = registry.of(checkpoint.algorithm)
    if not algorithm.offline or any(key in given.overrides for key in keys):
        return prepared
    told = [v for k in keys if (v := prepared.config.get(k)) not in (None, "", "sampler")]
    finding = Finding(
        "offline-data",
        Severity.WARNING,
        Verdict.RESET,
        "config.input",
        f"training read recorded steps from {told[0]!r}; the checkpoint loads without them"
        if told
        else f"{algorithm.name} learns from recorded steps, and the config does not name any; the "
        "checkpoint loads, and train() fails until it has some",
        'to train on: rllib_compat.load(CHECKPOINT, input="/path/to/recordings").train(); old '
        "JSON files will do. With Ray alone: AlgorithmConfig.offline_data(input_=…)",
    )
    if not told:
        return prepared.told(finding)
    return prepared.without(*keys).told(finding)
