"""The legacy config of a checkpoint, translated for the installed Ray and for this machine.

A checkpoint of Ray 2.1 and later holds the whole config, defaults included. Only what differs
from the defaults of that Ray was anybody's choice; the rest is one line of the report. The policies
are those that the checkpoint really has, with the spaces that were found for them. A checkpoint of
a machine with four GPUs and thirty workers would not load on a laptop: more than there is becomes
what there is, with a row that names both.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from rllib_compat import registry
from rllib_compat.config import Origin, Translation, default_config, translate
from rllib_compat.conversion import environment
from rllib_compat.conversion.given import ConfigSources, Given, diff
from rllib_compat.conversion.multi_agent import with_policies
from rllib_compat.neutral.checkpoint import LegacyCheckpoint
from rllib_compat.neutral.records import GlobalRef, StandIn
from rllib_compat.neutral.report import Finding, Severity, Verdict
from rllib_compat.ray_versions import configs
from rllib_compat.registry import keys as table

#: Methods of `AlgorithmConfig` and their arguments.
Calls: TypeAlias = "dict[str, dict[str, Any]]"

_RUNNERS = ("env_runners", "num_env_runners")
_EVALUATORS = ("evaluation", "evaluation_num_env_runners")
_LEARNERS = ("learners", "num_learners")
_LEARNER_GPUS = ("learners", "num_gpus_per_learner")
_RUNNER_GPUS = ("env_runners", "num_gpus_per_env_runner")

#: Where the config of SAC says the layers of its critics, and where those of its policy.
_CRITIC_AND_ACTOR = (("Q_model", "policy_model"), ("q_model_config", "policy_model_config"))


def translate_config(
    checkpoint: LegacyCheckpoint, given: Given
) -> tuple[Translation, tuple[Finding, ...]]:
    """Translates the checkpoint's config for the installed Ray.

    Returns:
        The translation with its own report, and what was done to the config before and after it.
    """
    assert checkpoint.algorithm is not None
    sources = ConfigSources(checkpoint.config)
    for step in (
        _without_defaults,
        _without_attention,
        _without_custom_model,
        _without_shapes_of_critics,
        with_policies,
        environment.with_env,
        _without_recordings,
        _with_overrides,
    ):
        sources = step(sources, checkpoint, given)
    translation = translate(
        sources.from_file,
        algorithm=checkpoint.algorithm,
        legacy_ray=checkpoint.source.ray_version,
        on_unknown="warn",
        origin=Origin.FILE,
        given=sources.from_caller,
        trust=given.trust,
    )
    translation = environment.with_stored_env(translation, checkpoint, given.overrides)
    calls, findings = fit_resources(
        translation.calls, given, configs.todays_config(translation.algorithm)
    )
    return replace(translation, calls=calls), (*sources.findings, *findings)


def _with_overrides(sources: ConfigSources, _: LegacyCheckpoint, given: Given) -> ConfigSources:
    """What the caller adds wins over all that was there; agents are looked at before."""
    own = {key: value for key, value in given.overrides.items() if key != "multiagent"}
    return sources.without(*own).giving(**own)


def _without_defaults(
    sources: ConfigSources, checkpoint: LegacyCheckpoint, _: Given
) -> ConfigSources:
    """Of a config with defaults in it: what differs from those of the Ray that wrote it."""
    if not checkpoint.config_is_complete:
        return sources
    config, legacy_ray = sources.from_file, checkpoint.source.ray_version
    defaults = default_config(checkpoint.algorithm or "PPO", legacy_ray or "2.10.0")
    chosen = _without_rays_own(diff(config, defaults), checkpoint.algorithm)
    finding = Finding.info(
        "config",
        Verdict.NOTE,
        "config",
        f"{len(config) - len(chosen)} of {len(config)} keys have the default of Ray "
        f"{legacy_ray}, or are Ray's own; {len(chosen)} were chosen and are translated",
    )
    return replace(sources, from_file=chosen).with_findings(finding)


def _without_rays_own(config: Mapping[str, Any], algorithm: str | None) -> dict[str, Any]:
    """Without what Ray put there for itself, in the configs inside the config, too."""
    chosen = {}
    for key, value in config.items():
        if (
            _is_of_ray(value)
            or _is_of_this_package(value)
            or _is_kept_by_ray(key, value, algorithm)
        ):
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


def _is_of_ray(value: Any) -> bool:
    """Whether a value names only classes of RLlib: whichever Ray loads it has its own."""
    if isinstance(value, Mapping):
        return bool(value) and all(map(_is_of_ray, value.values()))
    if isinstance(value, (list, tuple)):
        return bool(value) and all(map(_is_of_ray, value))
    return isinstance(value, (GlobalRef, StandIn)) and value.qualified.startswith("ray.rllib.")


def _is_of_this_package(value: Any, deepest: int = 8) -> bool:
    """Whether a value is a function of this package with its arguments: it is made anew.

    What a user's own function among them would have done is lost, and reported.
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
        one.qualified.startswith("rllib_compat.") or _is_of_this_package(one, deepest - 1)
        for one in code
    )


def _without_attention(sources: ConfigSources, _: LegacyCheckpoint, __: Given) -> ConfigSources:
    """The `model` part without an attention net, which only today's old API stack knows as a key.

    The modules of a converted checkpoint have it themselves.
    """
    model = sources.from_file.get("model")
    if not isinstance(model, Mapping) or not model.get("use_attention"):
        return sources
    keys = [key for key in model if str(key).startswith(("use_attention", "attention_"))]
    kept = {key: value for key, value in model.items() if key not in keys}
    finding = Finding.info(
        "attention",
        Verdict.CONVERTED,
        "config.model.use_attention",
        f"{len(keys)} keys became part of the modules",
    )
    return sources.changing(model=kept).with_findings(finding)


def _without_custom_model(
    sources: ConfigSources, checkpoint: LegacyCheckpoint, given: Given
) -> ConfigSources:
    """The `model` part without a custom model that the modules stand for.

    It is the one that the caller gives as a module, or one that DDPG was given and never used.
    """
    model = sources.from_file.get("model")
    stands = given.model or registry.of(checkpoint.algorithm).reader == "ddpg"
    if not (isinstance(model, Mapping) and model.get("custom_model") and stands):
        return sources
    kept = {key: value for key, value in model.items() if key != "custom_model"}
    finding = Finding.info(
        "custom-model",
        Verdict.CONVERTED,
        "config.model.custom_model",
        f"{given.model} takes its place" if given.model else "its layers are in the modules",
    )
    return sources.changing(model=kept).with_findings(finding)


def _without_shapes_of_critics(
    sources: ConfigSources, checkpoint: LegacyCheckpoint, _: Given
) -> ConfigSources:
    """SAC's config without critics of another shape than the policy's.

    A config of today has one shape for both; the modules of a converted checkpoint have their own.
    RNNSAC's config, which is ours, knows two.
    """
    algorithm = registry.of(checkpoint.algorithm)
    if not algorithm.soft_actor_critic or algorithm.name == "RNNSAC":
        return sources
    config, removed = dict(sources.from_file), dict[str, Any]()
    for critic, actor in _CRITIC_AND_ACTOR:
        ours, theirs = config.get(critic), config.get(actor)
        if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
            other = {k: v for k, v in ours.items() if k in theirs and theirs[k] != v}
            config[critic] = {k: v for k, v in ours.items() if k not in other}
            removed |= {f"{critic}.{key}": value for key, value in other.items()}
    if not removed:
        return sources
    shapes = ", ".join(f"{key} {value!r}" for key, value in removed.items())
    finding = Finding.info(
        "critics",
        Verdict.CONVERTED,
        "config.model",
        f"the critics keep their own layers, in their module: {shapes}",
    )
    return replace(sources, from_file=config).with_findings(finding)


def _without_recordings(
    sources: ConfigSources, checkpoint: LegacyCheckpoint, given: Given
) -> ConfigSources:
    """Takes out where recorded steps were read from, and the spaces that follow from it.

    Ray reads it as soon as a checkpoint is loaded; then the files would have to be where they
    were, in a form that today's readers know. Without any, Ray loads the checkpoint, and says in
    `train()` that a NoneType has no attribute sample.
    """
    keys = ("input", "input_")
    algorithm = registry.of(checkpoint.algorithm)
    if not algorithm.offline or any(key in given.overrides for key in keys):
        return sources
    inputs = [v for k in keys if (v := sources.from_file.get(k)) not in (None, "", "sampler")]
    finding = Finding.warning(
        "offline-data",
        Verdict.RESET,
        "config.input",
        f"training read recorded steps from {inputs[0]!r}; the checkpoint loads without them"
        if inputs
        else f"{algorithm.name} learns from recorded steps, and the config does not name any; the "
        "checkpoint loads, and train() fails until it has some",
        'to train on: rllib_compat.load(CHECKPOINT, input="/path/to/recordings").train(); old '
        "JSON files will do. With Ray alone: AlgorithmConfig.offline_data(input_=…)",
    )
    if not inputs:
        return sources.with_findings(finding)
    return sources.without(*keys).with_findings(finding)


def fit_resources(
    calls: Mapping[str, Mapping[str, Any]], given: Given, defaults: Any = None
) -> tuple[Calls, list[Finding]]:
    """Makes the resources of a config fit this machine.

    Args:
        calls: The translated config, by method.
        given: What the caller asks for.
        defaults: An `AlgorithmConfig` that has what no call names: Ray's default for IMPALA is a
            remote learner and two env runners, which may be more than there is.

    Returns:
        The calls, and a finding for each number that is another one now.
    """
    made = {method: dict(arguments) for method, arguments in calls.items()}
    findings: list[Finding] = []

    def current(setting: tuple[str, str]) -> float:
        method, argument = setting
        value = made.get(method, {}).get(argument, getattr(defaults, argument, 0))
        return value if isinstance(value, (int, float)) and not isinstance(value, bool) else 0

    def put(setting: tuple[str, str], value: int, why: str, hint: str) -> None:
        method, argument = setting
        before = made.get(method, {}).get(argument)
        if before == value:
            return
        if before is None and (default := getattr(defaults, argument, None)) is not None:
            before, hint = f"not set (Ray's default is {default})", ""
        made.setdefault(method, {})[argument] = value
        message = f"{argument} was {before if before is not None else 'not set'}, and is {value}: "
        severity = Severity.WARNING if hint else Severity.INFO
        findings.append(
            Finding("resources", severity, Verdict.RESET, f"$.{argument}", message + why, hint)
        )

    if given.num_env_runners is not None:
        put(_RUNNERS, given.num_env_runners, "you asked for it", "")
    if given.num_gpus is not None:
        learners = 0 if given.num_gpus <= 1 else given.num_gpus
        put(_LEARNERS, learners, "you asked for it", "")
        put(_LEARNER_GPUS, min(given.num_gpus, 1), "you asked for it", "")
    if given.keep_resources:
        return made, findings

    gpus, cpus = _gpus(), os.cpu_count() or 1
    keep = "--num-gpus N, or --keep-resources"
    if given.num_gpus is None and current(_LEARNER_GPUS) * max(current(_LEARNERS), 1) > gpus:
        why = f"this machine has {gpus} GPUs"
        if current(_LEARNERS) > max(gpus, 1):
            put(_LEARNERS, gpus, why, keep)
        put(_LEARNER_GPUS, min(gpus, 1), why, keep)
    if current(_RUNNER_GPUS) * current(_RUNNERS) > gpus:
        put(_RUNNER_GPUS, 0, f"this machine has {gpus} GPUs", "--keep-resources")
    why = f"this machine has {cpus} CPUs"
    by_cpu = (
        0 if current(_LEARNER_GPUS) else int(current(_LEARNERS))
    )  # remote learners take one each
    if given.num_gpus is None and by_cpu >= cpus:
        by_cpu = min(cpus - 1, 1)
        put(_LEARNERS, by_cpu, why, keep)
    most = max(cpus - max(by_cpu, 1), 1)
    if given.num_env_runners is None and current(_RUNNERS) > most:
        put(_RUNNERS, most, why, "--num-env-runners N, or --keep-resources")
    if current(_EVALUATORS) > most:
        put(_EVALUATORS, most, why, "--keep-resources")
    here = not current(_LEARNER_GPUS) and not current(_LEARNERS)
    if here and cpus > 1 and configs.learns_elsewhere(defaults):
        put(_LEARNERS, 1, "without a GPU, this Ray has the learner in a process of its own", "")
    return made, findings


def _gpus() -> int:
    import torch

    return int(torch.cuda.device_count())
