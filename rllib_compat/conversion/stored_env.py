"""What a checkpoint of this package says of its environment: a name, and what stands around it.

An environment that has a name is stored by it, and the wrappers around it as data, so that whoever
reads the checkpoint next has the same ones, without any code. What trainers save has the class that
`adapt_env` made instead, written by value: its settings are read as data, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rllib_compat.config import Origin, Translation, translate
from rllib_compat.config.border import admit
from rllib_compat.config.deferred import AdaptedEnv
from rllib_compat.neutral.check import is_version
from rllib_compat.neutral.checkpoint import LegacyCheckpoint
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.later import build
from rllib_compat.neutral.records import StandIn
from rllib_compat.runtime.atari import DEFAULTS
from rllib_compat.runtime.env_settings import STORED, EnvSettings

#: Settings that are plain data, and the keys of a legacy config that say the same.
_AS_STOREDS = ("horizon", "soft_horizon", "no_done_at_end", "clip_rewards", "preprocessor_pref")
_OF_MODEL = ("dim", "grayscale", "zero_mean")
DATA = (*_AS_STOREDS, "atari", "legacy_ray")


@frozen
class StoredEnv:
    """What a config says of the environment.

    Attributes:
        name: Its name, where it has one.
        env_config: Its context.
        settings: What stands around it, as `EnvSettings` has it; None: nobody said.
    """

    name: str | None
    env_config: Mapping[str, Any]
    settings: Mapping[str, Any] | None = None


def read(config: Mapping[str, Any], algorithm: str | None) -> StoredEnv | None:
    """What this package has stored in a config; None: it has not.

    Args:
        config: The config, of a file.
        algorithm: Whose keys it has.
    """
    told, env = config.get("env_config"), config.get("env")
    env_config = {str(k): v for k, v in told.items()} if isinstance(told, Mapping) else {}
    placed = env_config.pop(STORED, None)
    settings = _of_class(env)
    if isinstance(placed, Mapping):
        name, settings = placed.get("name"), placed.get("settings", settings)
    elif settings is not None:
        name = settings.get("env")
    else:
        return None
    name = name if isinstance(name, str) else None
    sound = _sound(settings, algorithm or "PPO") if isinstance(settings, Mapping) else None
    return StoredEnv(name, env_config, sound)


def _of_class(env: Any) -> Mapping[str, Any] | None:
    """The settings of a class that `adapt_env` made."""
    if not isinstance(env, StandIn) or env.class_name is None or not isinstance(env.state, tuple):
        return None
    attributes = env.state[0] if env.state else None
    told = attributes.get("settings") if isinstance(attributes, Mapping) else None
    if not isinstance(told, StandIn) or told.qualified.rpartition(".")[2] != EnvSettings.__name__:
        return None
    return told.state if isinstance(told.state, Mapping) else None


def _sound(settings: Mapping[str, Any], algorithm: str) -> dict[str, Any]:
    """Settings of a file whose values are such that a legacy config could have said them."""
    atari = settings.get("atari")
    atari = dict(atari) if isinstance(atari, Mapping) else {}
    keys = {key: settings[key] for key in _AS_STOREDS if key in settings}
    model = {key: atari[key] for key in _OF_MODEL if key in atari}
    admitted = admit({**keys, "model": model}, (algorithm,), Origin.FILE).config
    found = {key: admitted[key] for key in _AS_STOREDS if key in admitted}
    found["atari"] = dict(admitted.get("model", {}))
    if "framestack" in atari:
        found["atari"]["framestack"] = 4 if atari["framestack"] == 4 else None
    ray = settings.get("legacy_ray")
    found["legacy_ray"] = ray if is_version(ray) else None
    return found


def as_its_ray_played_it(env: Any, checkpoint: LegacyCheckpoint) -> EnvSettings:
    """An environment in what the checkpoint's Ray put around it by itself.

    Args:
        env: A name, a class or a creator.
        checkpoint: The checkpoint.
    """
    config, stored = checkpoint.config, read(checkpoint.config, checkpoint.algorithm)
    if stored is not None and stored.settings is not None:
        return EnvSettings(env, **stored.settings)
    keys = {key: config[key] for key in ("preprocessor_pref", "model") if key in config}
    model = keys.get("model")
    if isinstance(model, Mapping):
        keys["model"] = {key: model[key] for key in DEFAULTS if key in model}
    translated = translate(
        keys,
        algorithm="PPO",
        legacy_ray=checkpoint.source.ray_version,
        on_unknown="warn",
        origin=Origin.FILE,
        given={"env": env},
    )
    return translated.env_settings


def around(
    translation: Translation, stored: StoredEnv | None, said: Mapping[str, Any]
) -> Translation:
    """A translation with what a checkpoint had stored around its environment.

    Args:
        translation: The translated config.
        stored: What the checkpoint says.
        said: The caller's own keys, which win.
    """
    env = translation.calls.get("environment", {}).get("env")
    if stored is None or stored.settings is None or not isinstance(env, AdaptedEnv):
        return translation
    kept = {key: value for key, value in stored.settings.items() if key not in said}
    if "model" in said:
        kept["atari"] = {**kept.get("atari", {}), **env.settings.get("atari", {})}
    return _with_env(translation, AdaptedEnv({**env.settings, **kept}))


def by_name(translation: Translation) -> Translation:
    """A translation whose environment, if it has a name, is stored by it, with data around it."""
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
    stored["settings"] = {name: getattr(settings, name) for name in DATA}
    env_config[STORED] = stored
    return _with_env(translation, AdaptedEnv({"env": LegacyEnvByName}), env_config)


def _with_env(
    translation: Translation, env: AdaptedEnv, env_config: Mapping[str, Any] | None = None
) -> Translation:
    environment = {**translation.calls["environment"], "env": env}
    if env_config is not None:
        environment["env_config"] = env_config
    calls = {**translation.calls, "environment": environment}
    return replace(translation, calls=calls, env={**translation.env, **env.settings})
