"""Atari games, which RLlib wrapped by itself until Ray 2.40: which they are, and how by which Ray.

Whether an environment is one is told by the environment: it has an `ale`, and its observations are
images. Only where there is no environment yet, its entry in gymnasium's registry tells.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from packaging.version import Version

from rllib_compat.runtime.env_settings import EnvSettings

#: Of the model's keys and what follows from them, and their defaults in all Rays.
DEFAULTS: Mapping[str, Any] = {
    "dim": 84,
    "framestack": 4,
    "zeros_first": False,
    "grayscale": False,
    "zero_mean": True,
}

#: From this Ray on, only games of gymnasium's `ALE/` names were wrapped; frames were skipped where
#: `env_config` said `frameskip: 1`, whatever the game's name; and rewards were no longer clipped
#: unless the config said so.
GYMNASIUM = Version("2.3")


#: The keys that say how many frames are stacked. In Ray 1.2 to 1.5, the second one did where the
#: first one was -1: the frames before the first one of an episode were zeros then.
STACKED = ("framestack", "num_framestacks")


def atari_settings(model: Mapping[str, Any]) -> dict[str, Any]:
    """What a legacy config's `model` says of frames, as `EnvSettings.atari` has it."""
    told = {key: model[key] for key in DEFAULTS if key in model}
    if "framestack" not in told:
        return told
    if (stacks := told["framestack"]) is None:
        del told["framestack"]
    elif stacks == -1:
        number = model.get("num_framestacks")
        number = DEFAULTS["framestack"] if number in (None, "auto") else int(number)
        told["framestack"] = number if number > 1 else None
        told["zeros_first"] = number > 1
    else:
        told["framestack"] = DEFAULTS["framestack"] if stacks else None
    return told


def wanted(settings: EnvSettings) -> bool:
    """Whether Atari games are to be wrapped; the old API stack does it itself."""
    pref = settings.preprocessor_pref
    return pref == "deepmind" and not settings.multi_agent and not settings.old_stack


def may_change(settings: EnvSettings) -> bool:
    """Whether anything becomes of Atari games: wrappers, or RLlib's own preprocessing."""
    return settings.preprocessor_pref is not None and not settings.old_stack


def is_atari(env: Any, legacy_ray: str | None = None) -> bool:
    """Whether an environment is an Atari game that gives images.

    Args:
        env: The environment.
        legacy_ray: Whose Ray's answer is asked for; None: whether it is one.
    """
    shape = getattr(getattr(env, "observation_space", None), "shape", None)
    if shape is not None and len(shape) < 3:
        return False  # the game's memory
    if legacy_ray is not None and Version(legacy_ray) >= GYMNASIUM:
        return "AtariEnv<ALE" in str(env)
    return hasattr(getattr(env, "unwrapped", env), "ale")


def is_name(name: str) -> bool:
    """Whether gymnasium makes an Atari game of a name that it knows."""
    import gymnasium

    spec = gymnasium.registry.get(name)
    return spec is not None and str(spec.entry_point).startswith(("ale_py", "shimmy.atari"))


def wrapped(env: Any, settings: EnvSettings, context: Mapping[str, Any]) -> tuple[Any, EnvSettings]:
    """A game in the wrappers, and the settings with what goes with them.

    Args:
        env: The game, of any gym.
        settings: What the legacy config says.
        context: Its `env_config`.
    """
    from rllib_compat.runtime.atari_wrappers import wrap

    skips = _skips(env, settings, context)
    env = wrap(env, skips=skips, **{**DEFAULTS, **settings.atari})
    if settings.clip_rewards is None and clips(settings.legacy_ray):
        settings = replace(settings, clip_rewards=True)
    return env, settings


def _skips(env: Any, settings: EnvSettings, context: Mapping[str, Any]) -> bool:
    if settings.legacy_ray is None:
        return skips_none(env)
    if Version(settings.legacy_ray) >= GYMNASIUM:
        return bool(context.get("frameskip") == 1)
    return "NoFrameskip" in str(getattr(getattr(env, "spec", None), "id", ""))


def skips_none(env: Any) -> bool:
    """Whether a game gives every single frame."""
    spec = getattr(env, "spec", None)
    own = (getattr(spec, "kwargs", None) or {}).get("frameskip")
    return own == 1 or "NoFrameskip" in str(getattr(spec, "id", ""))


def clips(legacy_ray: str | None) -> bool:
    """Whether a Ray clipped an Atari game's rewards to their sign unless it was told otherwise."""
    return legacy_ray is None or Version(legacy_ray) < GYMNASIUM
