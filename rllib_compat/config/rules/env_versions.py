"""Versions of gym's environments that are gone, what takes their place, and what differs there.

Sources: the version histories in gymnasium's documentation (1.0), and gym's release notes.
"""

from __future__ import annotations

import re

from rllib_compat.neutral.frozen import frozen


@frozen
class Gone:
    """Versions of one environment that gymnasium no longer makes.

    Attributes:
        stem: The name without its version.
        versions: Those that are gone.
        now: The one that takes their place: the next that gymnasium has.
        differs: What is not the same there.
        matters: Whether an agent would notice.
    """

    stem: str
    versions: tuple[int, ...]
    now: int
    differs: str
    matters: bool = True


_BINDINGS = (
    "it runs on MuJoCo's own bindings instead of mujoco-py, and versions before 3 took no options"
)
_ROBOTS = ("HalfCheetah", "Hopper", "Swimmer", "Walker2d")
_STEPS = "; version 1 ended episodes earlier"

GONE = (
    Gone("Pendulum", (0,), 1, "the equations were simplified; rewards and limits stay", False),
    Gone(
        "LunarLander",
        (1, 2),
        3,
        "wind and turbulence, off by default, begin anew with each episode, and resets with one "
        "seed are alike; rewards and limits stay those of version 2",
    ),
    Gone(
        "LunarLanderContinuous",
        (1, 2),
        3,
        "wind and turbulence, off by default, begin anew with each episode, and resets with one "
        "seed are alike; rewards and limits stay those of version 2",
    ),
    Gone("BipedalWalker", (1, 2), 3, "lidar gives the closest trace, not the furthest"),
    Gone("BipedalWalkerHardcore", (1, 2), 3, "lidar gives the closest trace, not the furthest"),
    Gone(
        "CarRacing",
        (0, 1, 2),
        3,
        "a lap counts as done by other rules, and a finished lap terminates the episode",
    ),
    Gone("FrozenLake", (0,), 1, "rewards were mended"),
    Gone("FrozenLake8x8", (0,), 1, "rewards were mended"),
    Gone("Taxi", (0, 1, 2), 3, "the map was corrected"),
    Gone("Blackjack", (0,), 1, "a natural is rewarded as the rules of the game say"),
    Gone("CliffWalking", (0,), 1, "it can be slippery, which is off by default", False),
    Gone("Acrobot", (0,), 1, "observations hold sine and cosine of the angles; 500 steps, not 200"),
    *(Gone(stem, (1,), 4, _BINDINGS + _STEPS) for stem in _ROBOTS),
    *(Gone(stem, (2, 3), 4, _BINDINGS) for stem in _ROBOTS),
    *(
        Gone(
            "Ant",
            versions,
            4,
            f"{_BINDINGS}; observations have 27 numbers instead of 111, without contact forces, "
            f"and contacts cost nothing{tail}",
        )
        for versions, tail in (((1,), _STEPS), ((2, 3), ""))
    ),
    Gone("Humanoid", (1,), 4, _BINDINGS + _STEPS),
    Gone("Humanoid", (2, 3), 4, f"{_BINDINGS}; contacts cost nothing"),
    *(
        Gone(stem, (1, 2), 4, _BINDINGS)
        for stem in ("Reacher", "Pusher", "InvertedPendulum", "InvertedDoublePendulum")
    ),
    Gone("HumanoidStandup", (1, 2), 4, _BINDINGS),
)


def find_successor(name: object) -> tuple[str, Gone] | None:
    """The name that takes the place of a version that is gone, and what differs."""
    match = (
        re.fullmatch(r"(?P<stem>\w+)-v(?P<version>\d+)", name) if isinstance(name, str) else None
    )
    if match is None:
        return None
    for row in GONE:
        if row.stem == match["stem"] and int(match["version"]) in row.versions:
            return f"{row.stem}-v{row.now}", row
    return None
