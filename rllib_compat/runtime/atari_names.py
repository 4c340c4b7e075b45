"""Names of Atari games, and what gym made of them.

The suffixes of a name were arguments of the game: `Deterministic` skips as many frames as DeepMind
did, `NoFrameskip` none, and others 2 to 4, drawn anew at each step; version 0 repeats the action
before at every fourth step; `-ram` shows the memory. Source: the registries of gym 0.15 and 0.21,
which agree (`tests/legacy/atari/ids.json`).
"""

from __future__ import annotations

import importlib.util
import re
from typing import TYPE_CHECKING, Any

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


def arguments(name: object) -> dict[str, Any] | None:
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


def spec_of(name: object) -> EnvSpec | None:
    """What gymnasium makes the game of an old name from; None: it is none, or no game is here."""
    told = arguments(name)
    if told is None or importlib.util.find_spec("ale_py") is None:
        return None
    from gymnasium.envs.registration import EnvSpec

    steps = told.pop("max_episode_steps")
    entry = "ale_py.env:AtariEnv"
    return EnvSpec(str(name), entry_point=entry, kwargs=told, max_episode_steps=steps)
