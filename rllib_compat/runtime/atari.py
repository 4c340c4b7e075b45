"""Atari games: which names and environments are some, and what each Ray put around them.

RLlib wrapped them by itself until Ray 2.40. Whether an environment is one is told by the
environment: it has an `ale`, and its observations are images. Only where there is no environment
yet, its name or its entry in gymnasium's registry tells.

The suffixes of a name were arguments of the game: `Deterministic` skips as many frames as DeepMind
did, `NoFrameskip` none, and others 2 to 4, drawn anew at each step; version 0 repeats the action
before at every fourth step; `-ram` shows the memory. Source: the registries of gym 0.15 and 0.21,
which agree (`tests/legacy/atari/ids.json`).
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from packaging.version import Version

from rllib_compat.runtime.env_settings import EnvSettings

if TYPE_CHECKING:
    from gymnasium.envs.registration import EnvSpec


# All games that gym's Atari environments had (gym 0.10 – 0.26).
GAMES = frozenset(
    (
        *("Adventure", "AirRaid", "Alien", "Amidar", "Assault", "Asterix", "Asteroids"),
        *("Atlantis", "BankHeist", "BattleZone", "BeamRider", "Berzerk", "Bowling", "Boxing"),
        *("Breakout", "Carnival", "Centipede", "ChopperCommand", "CrazyClimber", "Defender"),
        *("DemonAttack", "DoubleDunk", "ElevatorAction", "Enduro", "FishingDerby", "Freeway"),
        *("Frostbite", "Gopher", "Gravitar", "Hero", "IceHockey", "Jamesbond", "JourneyEscape"),
        *("Kangaroo", "Krull", "KungFuMaster", "MontezumaRevenge", "MsPacman", "NameThisGame"),
        *("Phoenix", "Pitfall", "Pong", "Pooyan", "PrivateEye", "Qbert", "Riverraid"),
        *("RoadRunner", "Robotank", "Seaquest", "Skiing", "Solaris", "SpaceInvaders"),
        *("StarGunner", "Tennis", "TimePilot", "Tutankham", "UpNDown", "Venture"),
        *("VideoPinball", "WizardOfWor", "YarsRevenge", "Zaxxon"),
    )
)
_NAME = re.compile(
    r"(?P<ale>ALE/)?(?P<game>[A-Za-z]+?)(?P<ram>-ram)?(?P<skip>Deterministic|NoFrameskip)?"
    r"-v(?P<version>\d)"
)


def is_atari_name(name: object) -> bool:
    """Whether gym or gymnasium make an Atari game that gives images of a name."""
    match = _match(name)
    return match is not None and not match["ram"]


def may_be_atari(env: object) -> bool:
    """Whether an environment may be an Atari game, which gives images or its memory."""
    return _match(env) is not None or not is_registered_name(env)


def _match(name: object) -> re.Match[str] | None:
    match = _NAME.fullmatch(name) if isinstance(name, str) else None
    if match is None:
        return None
    known = match["ale"] or match["game"] in GAMES or "NoFrameskip" in match[0]
    return match if known else None


def is_registered_name(name: object) -> bool:
    """Whether a name looks like one of gymnasium's registry, and not one of the user's own."""
    return isinstance(name, str) and re.search(r"-v\d+$", name) is not None


def game_of(name: object) -> str | None:
    """The game in a name that gym had (`Pong` of `PongNoFrameskip-v4`); None: it is none."""
    match = _match(name)
    return match["game"] if match is not None and arguments_of(name) is not None else None


def arguments_of(name: object) -> dict[str, Any] | None:
    """What gym called the game of a name with, and `max_episode_steps`; None: it had no such name.

    Args:
        name: A name of gym's, of the versions 0, 4 and 5.
    """
    match = _match(name)
    if match is None or match["game"] not in GAMES:
        return None
    version = int(match["version"])
    game = re.sub(r"(?<!^)(?=[A-Z])", "_", match["game"]).lower()
    told = {
        "game": game,
        "obs_type": "ram" if match["ram"] else "rgb",
        "repeat_action_probability": 0.0 if version == 4 else 0.25,
        "full_action_space": False,
    }
    if match["ale"]:
        known = version == 5 and match["skip"] is None
        return {**told, "frameskip": 4, "max_episode_steps": 27_000} if known else None
    if version not in (0, 4):
        return None
    usual = 3 if game == "space_invaders" else 4
    steps = 10_000 if version == 0 and match["skip"] is None else 100_000
    if match["skip"] == "NoFrameskip":
        return {**told, "frameskip": 1, "max_episode_steps": steps * usual}
    skip = usual if match["skip"] else (2, 5)
    return {**told, "frameskip": skip, "max_episode_steps": steps}


def game_spec(name: object) -> EnvSpec | None:
    """What gymnasium makes the game of an old name from; None: it is none, or no game is here."""
    told = arguments_of(name)
    if told is None or importlib.util.find_spec("ale_py") is None:
        return None
    from gymnasium.envs.registration import EnvSpec

    steps = told.pop("max_episode_steps")
    entry = "ale_py.env:AtariEnv"
    return EnvSpec(str(name), entry_point=entry, kwargs=told, max_episode_steps=steps)


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


def has_game_wrappers(settings: EnvSettings) -> bool:
    """Whether Atari games are to be wrapped; the old API stack does it itself."""
    pref = settings.preprocessor_pref
    return pref == "deepmind" and not settings.multi_agent and not settings.old_stack


def changes_games(settings: EnvSettings) -> bool:
    """Whether anything becomes of Atari games: wrappers, or RLlib's own preprocessing."""
    return settings.preprocessor_pref is not None and not settings.old_stack


def is_atari(env: object, legacy_ray: str | None = None) -> bool:
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


def is_registered_game(name: str) -> bool:
    """Whether gymnasium makes an Atari game of a name that it knows."""
    import gymnasium

    spec = gymnasium.registry.get(name)
    return spec is not None and str(spec.entry_point).startswith(("ale_py", "shimmy.atari"))


def wrap_game(
    env: object, settings: EnvSettings, context: Mapping[str, Any]
) -> tuple[Any, EnvSettings]:
    """A game in the wrappers, and the settings with what goes with them.

    Args:
        env: The game, of any gym.
        settings: What the legacy config says.
        context: Its `env_config`.
    """
    from rllib_compat.runtime.atari_wrappers import wrap

    skips = _skips(env, settings, context)
    env = wrap(env, skips=skips, **{**DEFAULTS, **settings.atari})
    if settings.clip_rewards is None and clips_rewards(settings.legacy_ray):
        settings = replace(settings, clip_rewards=True)
    return env, settings


def _skips(env: object, settings: EnvSettings, context: Mapping[str, Any]) -> bool:
    if settings.legacy_ray is None:
        return skips_none(env)
    if Version(settings.legacy_ray) >= GYMNASIUM:
        return bool(context.get("frameskip") == 1)
    return "NoFrameskip" in str(getattr(getattr(env, "spec", None), "id", ""))


def skips_none(env: object) -> bool:
    """Whether a game gives every single frame."""
    spec = getattr(env, "spec", None)
    own = (getattr(spec, "kwargs", None) or {}).get("frameskip")
    return own == 1 or "NoFrameskip" in str(getattr(spec, "id", ""))


def clips_rewards(legacy_ray: str | None) -> bool:
    """Whether a Ray clipped an Atari game's rewards to their sign unless it was told otherwise."""
    return legacy_ray is None or Version(legacy_ray) < GYMNASIUM
