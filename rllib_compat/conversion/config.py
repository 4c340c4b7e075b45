"""Translates the legacy config of a checkpoint for the installed Ray and this machine.

A checkpoint of a machine with four GPUs and thirty workers would not load on a laptop: such numbers
are reduced to this machine's, with a row that has both.

A converted checkpoint has an environment's name, and its wrappers as data, without any code.
Checkpoints of trainers have the class of `adapt_env` instead, pickled by value, whose settings are
read as data, too.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from rllib_compat.config import Origin, Translation, translate
from rllib_compat.config.deferred import AdaptedEnv
from rllib_compat.config.era import AUTO
from rllib_compat.config.validation import validate_config
from rllib_compat.conversion.given import Given
from rllib_compat.conversion.sources import collect_sources
from rllib_compat.neutral.check import is_version
from rllib_compat.neutral.checkpoint import LegacyCheckpoint
from rllib_compat.neutral.deferred import build
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.records import StandIn
from rllib_compat.neutral.report import Finding, Severity, Verdict
from rllib_compat.ray_versions import configs
from rllib_compat.runtime.atari import DEFAULTS
from rllib_compat.runtime.env_settings import STORED, SWITCHES, EnvSettings

if TYPE_CHECKING:
    from rllib_compat.ray_versions.types import AlgorithmConfig

#: Methods of `AlgorithmConfig` and their arguments.
Calls: TypeAlias = "dict[str, dict[str, Any]]"

_RUNNERS = ("env_runners", "num_env_runners")
_EVALUATORS = ("evaluation", "evaluation_num_env_runners")
_LEARNERS = ("learners", "num_learners")
_LEARNER_GPUS = ("learners", "num_gpus_per_learner")
_RUNNER_GPUS = ("env_runners", "num_gpus_per_env_runner")

#: Settings of an environment that are plain data → their keys in a legacy config.
_ENV_KEYS = ("horizon", "soft_horizon", "no_done_at_end", "clip_rewards", "preprocessor_pref")
_MODEL_KEYS = ("dim", "grayscale", "zero_mean")
#: The largest valid number of stacked frames.
_MOST_STACKED = 64
_DATA = (*_ENV_KEYS, "atari", "legacy_ray", *SWITCHES)


def translate_config(
    checkpoint: LegacyCheckpoint, given: Given
) -> tuple[Translation, tuple[Finding, ...]]:
    """Translates the checkpoint's config for the installed Ray.

    Returns:
        The translation with its own report, and findings of the changes before and after it.
    """
    assert checkpoint.algorithm is not None
    stored = read_stored_env(checkpoint.config, checkpoint.algorithm)
    env = {} if stored is None else {"env": stored.name, "env_config": stored.env_config}
    sources = collect_sources(checkpoint, given, env)
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
    translation = _with_settings(replace(translation, calls=calls), stored, given.overrides)
    return _stored_by_name(translation), (*sources.findings, *findings)


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


@frozen
class StoredEnv:
    """The environment of a config.

    Attributes:
        name: Its name, if it has one.
        env_config: Its env context.
        settings: The settings of its wrappers, as in `EnvSettings`; None: not known.
    """

    name: str | None
    env_config: Mapping[str, Any]
    settings: Mapping[str, Any] | None = None


def read_stored_env(config: Mapping[str, Any], algorithm: str | None) -> StoredEnv | None:
    """Returns the environment that this package has stored in a config, or None."""
    stored, env = config.get("env_config"), config.get("env")
    env_config = {str(k): v for k, v in stored.items()} if isinstance(stored, Mapping) else {}
    placed = env_config.pop(STORED, None)
    settings = _settings_of_class(env)
    if isinstance(placed, Mapping):
        name, settings = placed.get("name"), placed.get("settings", settings)
    elif settings is not None:
        name = settings.get("env")
    else:
        return None
    name = name if isinstance(name, str) else None
    sound = _valid_settings(settings, algorithm or "PPO") if isinstance(settings, Mapping) else None
    return StoredEnv(name, env_config, sound)


def _settings_of_class(env: object) -> Mapping[str, Any] | None:
    if not isinstance(env, StandIn) or env.class_name is None or not isinstance(env.state, tuple):
        return None
    attributes = env.state[0] if env.state else None
    settings = attributes.get("settings") if isinstance(attributes, Mapping) else None
    if (
        not isinstance(settings, StandIn)
        or settings.qualified.rpartition(".")[2] != EnvSettings.__name__
    ):
        return None
    return settings.state if isinstance(settings.state, Mapping) else None


def _valid_settings(settings: Mapping[str, Any], algorithm: str) -> dict[str, Any]:
    """Returns those settings of a file whose values a legacy config could have."""
    atari = settings.get("atari")
    atari = dict(atari) if isinstance(atari, Mapping) else {}
    keys = {key: settings[key] for key in _ENV_KEYS if key in settings}
    model = {key: atari[key] for key in _MODEL_KEYS if key in atari}
    valid = validate_config({**keys, "model": model}, (algorithm,), Origin.FILE).config
    found = {key: valid[key] for key in _ENV_KEYS if key in valid}
    found["atari"] = dict(valid.get("model", {}))
    if "framestack" in atari:
        stacks = atari["framestack"]
        known = type(stacks) is int and 1 < stacks <= _MOST_STACKED
        found["atari"]["framestack"] = stacks if known else None
        if atari.get("zeros_first") is True:
            found["atari"]["zeros_first"] = True
    ray = settings.get("legacy_ray")
    found["legacy_ray"] = ray if is_version(ray) else None
    found |= {flag: settings.get(flag) is not False for flag in SWITCHES}
    return found


def make_env_settings(env: Any, checkpoint: LegacyCheckpoint) -> EnvSettings:
    """Returns the settings of an environment with the checkpoint's Ray's own wrappers."""
    config, stored = checkpoint.config, read_stored_env(checkpoint.config, checkpoint.algorithm)
    if stored is not None and stored.settings is not None:
        return EnvSettings(env, **stored.settings)
    names = "preprocessor_pref", "model", *SWITCHES.values()
    keys = {key: config[key] for key in names if key in config}
    model = keys.get("model")
    if isinstance(model, Mapping):
        keys["model"] = {key: model[key] for key in DEFAULTS if key in model}
    translated = translate(
        keys,
        algorithm="PPO",
        legacy_ray=checkpoint.source.ray_version or AUTO,
        on_unknown="warn",
        origin=Origin.FILE,
        given={"env": env},
    )
    return translated.env_settings


def _with_settings(
    translation: Translation, stored: StoredEnv | None, overrides: Mapping[str, Any]
) -> Translation:
    """Adds stored wrappers to the environment of a translation; overrides have precedence."""
    env = translation.calls.get("environment", {}).get("env")
    if stored is None or stored.settings is None or not isinstance(env, AdaptedEnv):
        return translation
    kept = {key: value for key, value in stored.settings.items() if key not in overrides}
    if "model" in overrides:
        kept["atari"] = {**kept.get("atari", {}), **env.settings.get("atari", {})}
    return _replace_env(translation, AdaptedEnv({**env.settings, **kept}))


def _stored_by_name(translation: Translation) -> Translation:
    """Stores a translation's environment by its name, if it has one, with settings as data."""
    from rllib_compat.runtime.envs import adapt_env, find_creator
    from rllib_compat.runtime.placeholders import LegacyEnvByName

    environment = translation.calls.get("environment", {})
    env = environment.get("env")
    if not isinstance(env, AdaptedEnv):
        return translation
    settings = EnvSettings(**build(dict(env.settings)))
    env_config = dict(environment.get("env_config") or {})
    is_data = not (settings.multi_agent or settings.observation_fn or settings.old_stack)
    if settings.env is LegacyEnvByName:
        stored = dict(env_config[STORED])
    elif isinstance(settings.env, str) and find_creator(settings.env, trusted=False):
        stored = {"name": settings.env}
    else:
        return translation
    if not is_data or isinstance(adapt_env(settings), str):
        return translation
    stored["settings"] = {name: getattr(settings, name) for name in _DATA}
    env_config[STORED] = stored
    return _replace_env(translation, AdaptedEnv({"env": LegacyEnvByName}), env_config)


def _replace_env(
    translation: Translation, env: AdaptedEnv, env_config: Mapping[str, Any] | None = None
) -> Translation:
    environment = {**translation.calls["environment"], "env": env}
    if env_config is not None:
        environment["env_config"] = env_config
    calls = {**translation.calls, "environment": environment}
    return replace(translation, calls=calls, env={**translation.env, **env.settings})
