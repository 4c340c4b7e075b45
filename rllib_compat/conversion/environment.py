"""The environment of a checkpoint: its settings in the config, and how it is stored.

A converted checkpoint has an environment's name, and its wrappers as data, without any code.
Checkpoints of trainers have the class of `adapt_env` instead, pickled by value, whose settings are
read as data, too. If this machine lacks the environment, a placeholder with its spaces replaces it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rllib_compat import registry
from rllib_compat.config import Origin, Translation, translate
from rllib_compat.config.deferred import AdaptedEnv
from rllib_compat.config.era import AUTO
from rllib_compat.config.validation import validate_config
from rllib_compat.config.values.kinds import is_plain_env_name
from rllib_compat.conversion.given import ConfigSources, Given
from rllib_compat.neutral.check import is_version
from rllib_compat.neutral.checkpoint import LegacyCheckpoint
from rllib_compat.neutral.deferred import build
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.records import GlobalRef, StandIn
from rllib_compat.neutral.report import Finding, Verdict
from rllib_compat.ray_versions import tune
from rllib_compat.runtime.atari import DEFAULTS
from rllib_compat.runtime.env_settings import STORED, SWITCHES, EnvSettings

#: Settings that are plain data → their keys in a legacy config.
_ENV_KEYS = ("horizon", "soft_horizon", "no_done_at_end", "clip_rewards", "preprocessor_pref")
_MODEL_KEYS = ("dim", "grayscale", "zero_mean")
#: The largest valid number of stacked frames.
_MOST_STACKED = 64
_DATA = (*_ENV_KEYS, "atari", "legacy_ray", *SWITCHES)


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
    """Returns the settings of a class of `adapt_env`."""
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


def with_stored_env(
    translation: Translation, checkpoint: LegacyCheckpoint, overrides: Mapping[str, Any]
) -> Translation:
    """Adds the checkpoint's wrappers to the environment of a translation.

    An environment with a name is stored by it, with its settings as data.

    The caller's overrides have precedence.
    """
    stored = read_stored_env(checkpoint.config, checkpoint.algorithm)
    return _stored_by_name(_with_settings(translation, stored, overrides))


def _with_settings(
    translation: Translation, stored: StoredEnv | None, overrides: Mapping[str, Any]
) -> Translation:
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


def with_env(sources: ConfigSources, checkpoint: LegacyCheckpoint, given: Given) -> ConfigSources:
    """Adds a placeholder if this machine lacks the checkpoint's environment.

    A placeholder creates the environment once its name is registered; until then, it has only the
    spaces. A checkpoint's name is looked up among registered ones, and never imported.
    """
    from rllib_compat.runtime.envs import find_creator, why_not_importable
    from rllib_compat.runtime.placeholders import placeholder_env, placeholder_multi_agent_env

    stored = read_stored_env(sources.from_file, checkpoint.algorithm)
    if stored is not None:
        named = {"env": stored.name, "env_config": stored.env_config}
        sources = sources.changing(**named)
    env, why = sources.from_file.get("env"), None
    if given.env is not None:
        sources = sources.without("env").giving(env=given.env)
        if not isinstance(given.env, str):
            return sources
        env, why = given.env, why_not_importable(given.env)
        if why is None and find_creator(env) is not None:
            return sources
    elif _is_trusted(env, given):
        return sources
    elif (
        isinstance(env, str)
        and is_plain_env_name(env)
        and (why := why_not_importable(env)) is None
        and find_creator(env, trusted=False)
    ):
        return sources if tune.is_registered_env(env) else _without_paths(sources)
    name = env if isinstance(env, str) else getattr(env, "label", None)
    env_config = _valid_env_config(sources, checkpoint)
    known = {
        policy_id: (policy.observation_space, policy.action_space)
        for policy_id, policy in checkpoint.policies.items()
        if policy.observation_space is not None and policy.action_space is not None
    }
    if not checkpoint.is_multi_agent:
        ((observation, action),) = known.values()
        cls, env_config = placeholder_env(name, observation, action, env_config)
    else:
        cls, env_config = placeholder_multi_agent_env(name, known, env_config)
    sources = sources.without("env", "env_config", "disable_env_checking")
    sources = sources.giving(env=cls, env_config=env_config, disable_env_checking=True)
    return sources.with_findings(_unknown_env(name, why))


def _without_paths(sources: ConfigSources) -> ConfigSources:
    """Removes strings from the file's `env_config`s that gymnasium's environments could open.

    An `evaluation_config` has its own `env_config`.
    """
    findings: list[Finding] = []
    given, changed = sources.from_caller, dict[str, Any]()
    own = sources.from_file.get("env_config")
    if isinstance(own, Mapping) and "env_config" not in given:
        changed["env_config"] = _keep_plain(own, "env_config", findings)
    evaluation = sources.from_file.get("evaluation_config")
    evaluation = evaluation if isinstance(evaluation, Mapping) else {}
    inner = evaluation.get("env_config")
    if isinstance(inner, Mapping) and "evaluation_config" not in given:
        kept = _keep_plain(inner, "evaluation_config.env_config", findings)
        changed["evaluation_config"] = {**evaluation, "env_config": kept}
    return sources.changing(**changed).with_findings(*findings) if findings else sources


def _keep_plain(
    env_config: Mapping[Any, Any], where: str, findings: list[Finding]
) -> dict[str, Any]:
    """Removes values that could be paths, with a row for each."""
    from rllib_compat.runtime.envs import without_paths

    kept = without_paths({str(key): value for key, value in env_config.items()})
    findings += [
        Finding.warning(
            "environment",
            Verdict.DROPPED,
            f"config.{where}.{key}"[:300],
            "it could be the name of a file, and environments of gymnasium open such files",
            "if it is right, say so: rllib_compat.load(OLD, env_config={…})",
        )
        for key in env_config
        if str(key) not in kept
    ]
    return kept


def _is_trusted(env: object, given: Given) -> bool:
    text = env.qualified if isinstance(env, GlobalRef) else env
    trusted = {name.replace(":", ".") for name in given.trust}
    return isinstance(text, str) and text.replace(":", ".") in trusted


def _valid_env_config(sources: ConfigSources, checkpoint: LegacyCheckpoint) -> dict[str, Any]:
    """Returns the valid part of the file's `env_config`."""
    algorithm = registry.of(checkpoint.algorithm)
    part = {key: value for key, value in sources.from_file.items() if key == "env_config"}
    valid = validate_config(part, (algorithm.name, algorithm.becomes), Origin.FILE).config
    env_config = valid.get("env_config")
    return dict(env_config) if isinstance(env_config, Mapping) else {}


def _unknown_env(name: str | None, why: str | None) -> Finding:
    """Returns the row for an environment that this machine lacks."""
    if name is None:
        message = "the checkpoint does not name its environment; it loads, and has the spaces"
        hint = "give it with --env, or to continue training: rllib_compat.load(NEW, env=MyEnv)"
    elif why is not None:
        message = f"the environment {name!r} can't be made here; the checkpoint loads, and has "
        message += f"its spaces: {why}"
        hint = "before you continue training, install what is missing"
    else:
        message = f"the environment {name!r} is not known on this machine; the checkpoint loads, "
        message += "and has its spaces"
        hint = f"before you continue training: ray.tune.register_env({name!r}, lambda config: "
        hint += "MyEnv(config)), in each program that loads it"
    return Finding.warning("environment", Verdict.DERIVED, "config.env", message, hint)
