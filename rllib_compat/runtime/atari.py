"""Atari games: how names and environments are recognized, and how each Ray wrapped them.

RLlib wrapped them automatically until Ray 2.40. An environment is an Atari game if it has an `ale`
and its observations are images. Before it is created, its name or its entry in gymnasium's registry
decides.

The suffixes of a name were arguments of the game: `Deterministic` skips as many frames as DeepMind
did, `NoFrameskip` none, and others 2 to 4, at random for each step; version 0 repeats the previous
action with probability 0.25; `-ram` observes the RAM. Source: the registries of gym 0.15 and 0.21,
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


# All games of gym's Atari environments (gym 0.10 – 0.26).
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
    """Whether a name is one of gym or gymnasium for an Atari game with images."""
    match = _match(name)
    return match is not None and not match["ram"]


def may_be_atari(env: object) -> bool:
    """Whether an environment may be an Atari game, with images or RAM."""
    return _match(env) is not None or not is_registered_name(env)


def _match(name: object) -> re.Match[str] | None:
    match = _NAME.fullmatch(name) if isinstance(name, str) else None
    if match is None:
        return None
    known = match["ale"] or match["game"] in GAMES or "NoFrameskip" in match[0]
    return match if known else None


def is_registered_name(name: object) -> bool:
    """Whether a name has the form of gymnasium's registry, such as `Name-v0`."""
    return isinstance(name, str) and re.search(r"-v\d+$", name) is not None


def game_of(name: object) -> str | None:
    """Returns the game of a gym name (`Pong` of `PongNoFrameskip-v4`), or None."""
    match = _match(name)
    return match["game"] if match is not None and arguments_of(name) is not None else None


def arguments_of(name: object) -> dict[str, Any] | None:
    """Returns gym's arguments for a name and `max_episode_steps`, or None for unknown names.

    Args:
        name: A name of gym, of version 0, 4 or 5.
    """
    match = _match(name)
    if match is None or match["game"] not in GAMES:
        return None
    version = int(match["version"])
    game = re.sub(r"(?<!^)(?=[A-Z])", "_", match["game"]).lower()
    arguments = {
        "game": game,
        "obs_type": "ram" if match["ram"] else "rgb",
        "repeat_action_probability": 0.0 if version == 4 else 0.25,
        "full_action_space": False,
    }
    if match["ale"]:
        known = version == 5 and match["skip"] is None
        return {**arguments, "frameskip": 4, "max_episode_steps": 27_000} if known else None
    if version not in (0, 4):
        return None
    usual = 3 if game == "space_invaders" else 4
    steps = 10_000 if version == 0 and match["skip"] is None else 100_000
    if match["skip"] == "NoFrameskip":
        return {**arguments, "frameskip": 1, "max_episode_steps": steps * usual}
    skip = usual if match["skip"] else (2, 5)
    return {**arguments, "frameskip": skip, "max_episode_steps": steps}


def game_spec(name: object) -> EnvSpec | None:
    """Returns gymnasium's spec for an old name; None: no Atari name, or no installed games."""
    arguments = arguments_of(name)
    if arguments is None or importlib.util.find_spec("ale_py") is None:
        return None
    from gymnasium.envs.registration import EnvSpec

    steps = arguments.pop("max_episode_steps")
    entry = "ale_py.env:AtariEnv"
    return EnvSpec(str(name), entry_point=entry, kwargs=arguments, max_episode_steps=steps)


#: The settings of frames, and their defaults in all Rays.
DEFAULTS: Mapping[str, Any] = {
    "dim": 84,
    "framestack": 4,
    "zeros_first": False,
    "grayscale": False,
    "zero_mean": True,
}

#: Since this Ray, only games with gymnasium's `ALE/` names are wrapped; the wrapper skips frames if
#: `env_config` has `frameskip: 1`, for any name; and rewards are clipped only if the config says
#: so.
GYMNASIUM = Version("2.3")

#: The keys for the number of stacked frames. In Ray 1.2 to 1.5, the second applied if the first was
#: -1; then the frames before an episode's first were zeros.
STACKED = ("framestack", "num_framestacks")


def atari_settings(model: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings of frames in a legacy config's `model`, for `EnvSettings.atari`."""
    settings = {key: model[key] for key in DEFAULTS if key in model}
    if "framestack" not in settings:
        return settings
    if (stacks := settings["framestack"]) is None:
        del settings["framestack"]
    elif stacks == -1:
        number = model.get("num_framestacks")
        number = DEFAULTS["framestack"] if number in (None, "auto") else int(number)
        settings["framestack"] = number if number > 1 else None
        settings["zeros_first"] = number > 1
    else:
        settings["framestack"] = DEFAULTS["framestack"] if stacks else None
    return settings


def has_game_wrappers(settings: EnvSettings) -> bool:
    """Whether to wrap Atari games; the old API stack does so itself."""
    pref = settings.preprocessor_pref
    return pref == "deepmind" and not settings.multi_agent and not settings.old_stack


def changes_games(settings: EnvSettings) -> bool:
    """Whether Atari games are wrapped or preprocessed."""
    return settings.preprocessor_pref is not None and not settings.old_stack


def is_atari(env: object, legacy_ray: str | None = None) -> bool:
    """Whether an environment is an Atari game with images.

    Args:
        env: The environment.
        legacy_ray: The Ray whose check to use; None: whether it is one.
    """
    shape = getattr(getattr(env, "observation_space", None), "shape", None)
    if shape is not None and len(shape) < 3:
        return False  # the game's RAM
    if legacy_ray is not None and Version(legacy_ray) >= GYMNASIUM:
        return "AtariEnv<ALE" in str(env)
    return hasattr(getattr(env, "unwrapped", env), "ale")


def is_registered_game(name: str) -> bool:
    """Whether a name is one of gymnasium for an Atari game."""
    import gymnasium

    spec = gymnasium.registry.get(name)
    return spec is not None and str(spec.entry_point).startswith(("ale_py", "shimmy.atari"))


def wrap_game(
    env: object, settings: EnvSettings, context: Mapping[str, Any]
) -> tuple[Any, EnvSettings]:
    """Wraps a game, and returns it with settings that clip rewards if the Ray did."""
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
    """Whether a game skips no frames itself."""
    spec = getattr(env, "spec", None)
    own = (getattr(spec, "kwargs", None) or {}).get("frameskip")
    return own == 1 or "NoFrameskip" in str(getattr(spec, "id", ""))


def clips_rewards(legacy_ray: str | None) -> bool:
    """Whether a Ray clipped an Atari game's rewards to their sign by default."""
    return legacy_ray is None or Version(legacy_ray) < GYMNASIUM
