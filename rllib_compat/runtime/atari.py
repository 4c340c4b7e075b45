"""Atari games, which RLlib wrapped by itself until Ray 2.40.

Whether an environment is one is told by the environment, as `is_atari` of Ray 0.7 – 2.35 did: it
has an `ale`, and its observations are images. Only where there is no environment yet, its entry in
gymnasium's registry tells.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rllib_compat.runtime.env_settings import EnvSettings

#: How many frames the wrappers skip where the game itself skips none.
SKIP = 4


def wanted(settings: EnvSettings) -> bool:
    """Whether Atari games are to be wrapped; the old API stack does it itself."""
    deepmind = settings.preprocessor_pref in (None, "deepmind")
    return deepmind and not settings.multi_agent and not settings.old_stack


def is_atari(env: Any) -> bool:
    """Whether an environment is an Atari game that gives images."""
    shape = getattr(getattr(env, "observation_space", None), "shape", None)
    # What has fewer than three dimensions is the game's memory.
    gives_images = shape is None or len(shape) >= 3
    return gives_images and hasattr(getattr(env, "unwrapped", env), "ale")


def is_name(name: str) -> bool:
    """Whether gymnasium makes an Atari game of a name that it knows."""
    import gymnasium

    spec = gymnasium.registry.get(name)
    return spec is not None and str(spec.entry_point).startswith(("ale_py", "shimmy.atari"))


def wrapped(env: Any, settings: EnvSettings) -> tuple[Any, EnvSettings]:
    """A game in the DeepMind wrappers, and the settings with what goes with them.

    Frames are skipped where the game skips none: its id says `NoFrameskip`, or its own
    `frameskip` is 1, which an `env_config` can say.
    """
    from ray.rllib.env.wrappers.atari_wrappers import wrap_atari_for_new_api_stack

    # Ray's own defaults, 64 and none, are not those of old.
    told = {"dim": 84, "framestack": 4, **settings.atari}
    env = wrap_atari_for_new_api_stack(env, frameskip=SKIP if skips_none(env) else 1, **told)
    if settings.clip_rewards is None:
        settings = replace(settings, clip_rewards=True)
    return env, settings


def skips_none(env: Any) -> bool:
    """Whether a game gives every single frame."""
    spec = getattr(env, "spec", None)
    own = (getattr(spec, "kwargs", None) or {}).get("frameskip")
    return own == 1 or "NoFrameskip" in str(getattr(spec, "id", ""))
