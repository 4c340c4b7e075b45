"""Translates the legacy config of a checkpoint for the installed Ray and this machine.

A checkpoint of Ray 2.1 and later has the complete config, including defaults. The user has chosen
only the values that differ from that Ray's defaults; the others are one line of the report. The
policies are those of the checkpoint, with the spaces that were found. A checkpoint of a machine
with four GPUs and thirty workers would not load on a laptop: such numbers are reduced to this
machine's, with a row that has both.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from rllib_compat import registry
from rllib_compat.config import Origin, Translation, default_config, translate
from rllib_compat.config.era import AUTO
from rllib_compat.config.rules import find
from rllib_compat.config.validation import validate_config
from rllib_compat.conversion import environment
from rllib_compat.conversion.given import ConfigSources, Given, diff, same_value
from rllib_compat.neutral import spaces
from rllib_compat.neutral.checkpoint import LegacyCheckpoint, PolicyState
from rllib_compat.neutral.records import GlobalRef, StandIn, is_stand_in
from rllib_compat.neutral.report import Finding, Severity, Verdict
from rllib_compat.ray_versions import configs
from rllib_compat.registry import keys as table
from rllib_compat.runtime.policy_mapping import PolicyOfSameName

if TYPE_CHECKING:
    from rllib_compat.ray_versions.types import AlgorithmConfig

#: Methods of `AlgorithmConfig` and their arguments.
Calls: TypeAlias = "dict[str, dict[str, Any]]"

_RUNNERS = ("env_runners", "num_env_runners")
_EVALUATORS = ("evaluation", "evaluation_num_env_runners")
_LEARNERS = ("learners", "num_learners")
_LEARNER_GPUS = ("learners", "num_gpus_per_learner")
_RUNNER_GPUS = ("env_runners", "num_gpus_per_env_runner")

#: The keys of SAC's config for the layers of its critics and of its policy.
_CRITIC_AND_ACTOR = (("Q_model", "policy_model"), ("q_model_config", "policy_model_config"))

#: The multi-agent keys, which are in their own dict or at the top level, depending on the Ray.
#: Other keys of the dict are translated as any key.
_KEYS = ("policies", "policy_graphs", "policy_mapping_fn", "policies_to_train")

#: The installed Ray's keys for reading recordings.
_READING = {"input_read_method", "input_read_episodes", "input_read_sample_batches"}

#: A policy's config with more keys is a complete config, not the user's override.
_COMPLETE = 60

_NO_VALUE = object()


def translate_config(
    checkpoint: LegacyCheckpoint, given: Given
) -> tuple[Translation, tuple[Finding, ...]]:
    """Translates the checkpoint's config for the installed Ray.

    Returns:
        The translation with its own report, and findings of the changes before and after it.
    """
    assert checkpoint.algorithm is not None
    sources = ConfigSources(checkpoint.config)
    for step in (
        _without_defaults,
        _without_attention,
        _without_custom_model,
        _without_shapes_of_critics,
        _with_policies,
        environment.with_env,
        _without_recordings,
    ):
        sources = step(sources, checkpoint, given)
    # The caller's keys have precedence.
    own = {key: value for key, value in given.overrides.items() if key != "multiagent"}
    sources = sources.without(*own).giving(**own)
    translation = translate(
        sources.from_file,
        algorithm=checkpoint.algorithm,
        legacy_ray=checkpoint.source.ray_version or AUTO,
        on_unknown="warn",
        origin=Origin.FILE,
        given=sources.from_caller,
        trust=given.trust,
    )
    calls, findings = fit_resources(
        translation.calls, given, configs.todays_config(translation.algorithm)
    )
    translation = replace(translation, calls=calls)
    translation = environment.with_stored_env(translation, checkpoint, given.overrides)
    return translation, (*sources.findings, *findings)


def _without_defaults(
    sources: ConfigSources, checkpoint: LegacyCheckpoint, _: Given
) -> ConfigSources:
    """Removes the defaults of a config's Ray."""
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
    """Removes Ray's internal keys, also in nested configs."""
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


def _is_kept_by_ray(key: str, value: object, algorithm: str | None) -> bool:
    """Whether a key is private, or -1 as a placeholder of another algorithm's key."""
    if key.startswith(("_AlgorithmConfig__", "__")):
        return True
    owners = {home for home in table.homes(key) if home != "common"}
    return bool(owners) and algorithm not in owners and type(value) is int and value == -1


def _is_of_ray(value: object) -> bool:
    """Whether a value names only classes of RLlib, which each Ray has itself."""
    if isinstance(value, Mapping):
        return bool(value) and all(map(_is_of_ray, value.values()))
    if isinstance(value, (list, tuple)):
        return bool(value) and all(map(_is_of_ray, value))
    return isinstance(value, (GlobalRef, StandIn)) and value.qualified.startswith("ray.rllib.")


def _is_of_this_package(value: object, deepest: int = 8) -> bool:
    """Whether a value is a function of this package with its arguments, which is created again.

    A user's own function among the arguments is lost, and reported.
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
    """Removes attention from `model`, whose keys only the old API stack has now.

    The modules of a converted checkpoint have the attention themselves.
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
        f"{len(keys)} keys are in the modules now",
    )
    return sources.changing(model=kept).with_findings(finding)


def _without_custom_model(
    sources: ConfigSources, checkpoint: LegacyCheckpoint, given: Given
) -> ConfigSources:
    """Removes a custom model from `model`, which the modules replace.

    The caller passes it as a module, or it is one that DDPG ignored.
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
        f"{given.model} replaces it" if given.model else "its layers are in the modules",
    )
    return sources.changing(model=kept).with_findings(finding)


def _without_shapes_of_critics(
    sources: ConfigSources, checkpoint: LegacyCheckpoint, _: Given
) -> ConfigSources:
    """Removes the layers of critics from SAC's config, if they differ from the policy's.

    A new config has one setting for both; the modules of a converted checkpoint have their own.
    RNNSAC's config, which is this package's, has two.
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
    """Removes the paths of recordings, and settings that depend on them.

    Ray reads recordings when it loads a checkpoint; then the files would have to be at the same
    paths, in a format of the installed Ray. Without them, Ray loads the checkpoint, and `train()`
    raises that a NoneType has no attribute sample.
    """
    keys = ("input", "input_")
    algorithm = registry.of(checkpoint.algorithm)
    if not algorithm.offline:
        return sources
    if any(key in given.overrides for key in keys):
        # The settings for reading belong to the files: a converted checkpoint has Ray's defaults.
        return sources.changing(**dict.fromkeys(_READING & checkpoint.config.keys()))
    inputs = [v for k in keys if (v := sources.from_file.get(k)) not in (None, "", "sampler")]
    finding = Finding.warning(
        "offline-data",
        Verdict.RESET,
        "config.input",
        f"the training used recordings in {inputs[0]!r}; the checkpoint loads without them"
        if inputs
        else f"{algorithm.name} trains on recordings, and the config has none; the checkpoint "
        "loads, and train() raises an error until it has some",
        'to continue training: rllib_compat.load(CHECKPOINT, input="/path/to/recordings").train(), '
        "also with old JSON files; with Ray only: AlgorithmConfig.offline_data(input_=…)",
    )
    if not inputs:
        return sources.with_findings(finding)
    return sources.without(*keys).with_findings(finding)


def _with_policies(
    sources: ConfigSources, checkpoint: LegacyCheckpoint, given: Given
) -> ConfigSources:
    """Replaces `multiagent` with the checkpoint's policies."""
    config = sources.from_file
    section = config.get("multiagent")
    part = dict(section) if isinstance(section, Mapping) else {}
    sources = sources.without("multiagent", *_KEYS)
    if not checkpoint.is_multi_agent:
        return sources
    rest = {key: value for key, value in part.items() if key not in _KEYS}
    others = validate_config({"multiagent": rest}, _algorithms(checkpoint), Origin.FILE)
    made: dict[str, Any] = dict(others.config.get("multiagent") or {})
    made["policies"] = {}
    findings = list(others.findings)
    for policy_id, policy in checkpoint.policies.items():
        spec, found = _spec(checkpoint, policy)
        made["policies"][policy_id] = spec
        findings += found
    callers = dict(given.overrides.get("multiagent") or {})
    made |= callers
    if "policy_mapping_fn" not in callers:
        made["policy_mapping_fn"] = PolicyOfSameName(tuple(checkpoint.policies))
        lost = Finding.warning(
            "policy-mapping",
            Verdict.RESET,
            "policy_mapping_fn",
            "the policy mapping function is code and was not executed; each agent now has the "
            "policy with its id",
            "to continue training: "
            "rllib_compat.load(NEW, env=MyEnv, policy_mapping_fn=my_function)",
        )
        findings.append(lost)
    if "policies_to_train" in callers:
        return sources.giving(multiagent=made).with_findings(*findings)
    key = "policies_to_train"
    said = (checkpoint.policies_to_train, part.get(key), config.get(key))
    trained, found = _to_train(checkpoint, [one for one in said if one is not None])
    can_learn = [k for k, policy in checkpoint.policies.items() if policy.has_weights]
    if len(can_learn) < len(checkpoint.policies):
        trained = [k for k in can_learn if trained is None or k in trained]
    if trained is not None:
        made[key] = trained
    return sources.giving(multiagent=made).with_findings(*findings, *found)


def _to_train(
    checkpoint: LegacyCheckpoint, sources: list[Any]
) -> tuple[list[str] | None, list[Finding]]:
    """Returns the policies to train, from the state or the config; None: all."""
    path = "policies_to_train"
    named = next((s for s in sources if isinstance(s, (list, tuple, set, frozenset))), None)
    if named is None:
        reset = Finding.warning(
            "policies-to-train",
            Verdict.RESET,
            path,
            "code, which was not executed, decided which policies to train; now all are trained",
            "before you continue training: config.multi_agent(policies_to_train=[…])",
        )
        return None, [reset] if sources else []
    trained, unknown = _ids(checkpoint, named)
    frozen = [policy_id for policy_id in checkpoint.policies if policy_id not in trained]
    message = f"trained: {', '.join(trained) or 'none'}; as they are: {', '.join(frozen) or 'none'}"
    if any(is_stand_in(source) for source in sources):
        message += " (by the config; code that may have changed it was not executed)"
    if unknown:
        message += f"; not in this checkpoint: {', '.join(unknown)}"
    severity = Severity.WARNING if unknown else Severity.INFO
    return trained, [Finding("policies-to-train", severity, Verdict.KEPT, path, message)]


def _ids(checkpoint: LegacyCheckpoint, named: Iterable[Any]) -> tuple[list[str], list[str]]:
    """Returns the current ids of a file's policies, in the checkpoint's order, and unknown ids."""
    names = {str(name) for name in named}
    old = {policy.old_id: policy_id for policy_id, policy in checkpoint.policies.items()}
    known = [policy_id for old_id, policy_id in old.items() if old_id in names]
    return known, sorted(names - old.keys())


def _spec(checkpoint: LegacyCheckpoint, policy: PolicyState) -> tuple[Any, list[Finding]]:
    """Returns a policy's tuple: class, spaces, and its own settings."""
    assert policy.observation_space is not None
    assert policy.action_space is not None
    valid = validate_config(_overrides(checkpoint, policy), _algorithms(checkpoint), Origin.FILE)
    spec = (
        None,
        spaces.to_gymnasium(policy.observation_space),
        spaces.to_gymnasium(policy.action_space),
        valid.config,
    )
    return spec, valid.findings


def _overrides(checkpoint: LegacyCheckpoint, policy: PolicyState) -> dict[str, Any]:
    """Returns a policy's own settings.

    Ray 2.1 and later stored the worker's complete config for each policy, of which only training
    settings can differ.
    """
    own, algorithms = policy.config, _algorithms(checkpoint)
    base = dict(checkpoint.config)
    if len(own) > _COMPLETE:
        defaults = default_config(algorithms[0], checkpoint.source.ray_version or "2.10.0")
        base = {**defaults, **base}
        own = {key: value for key, value in own.items() if _is_for_training(key, algorithms)}
    return {
        key: value
        for key, value in own.items()
        if key != "model" and not same_value(value, base.get(key, _NO_VALUE))
    }


def _is_for_training(key: str, algorithms: tuple[str, str]) -> bool:
    rule = find(key, algorithms)
    return rule is not None and rule.target.startswith("training.")


def _algorithms(checkpoint: LegacyCheckpoint) -> tuple[str, str]:
    algorithm = registry.of(checkpoint.algorithm)
    return algorithm.name, algorithm.becomes


def fit_resources(
    calls: Mapping[str, Mapping[str, Any]], given: Given, defaults: AlgorithmConfig | None = None
) -> tuple[Calls, list[Finding]]:
    """Reduces the resources of a config to those of this machine.

    Args:
        calls: The translated config, by method.
        given: The caller's resources.
        defaults: An `AlgorithmConfig` for other settings: by default, IMPALA has a remote learner
            and two env runners, which may be too many.

    Returns:
        The calls, and a finding for each changed number.
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
    by_cpu = 0 if current(_LEARNER_GPUS) else int(current(_LEARNERS))  # one for each remote learner
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
