"""Which names are Atari games; a translation makes no environment that could be asked."""

from __future__ import annotations

import re

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
    r"(?P<ale>ALE/)?(?P<game>[A-Za-z]+?)(?P<ram>-ram)?(Deterministic|NoFrameskip)?-v\d"
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
