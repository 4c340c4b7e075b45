"""Every algorithm that any RLlib had, and what can be asked about all of them.

Three tables are modules of their own: `keys` (the keys and defaults of every Ray), `old_names`
(what `ray` and `gym` had) and `legacy_api` (what of old objects can't be). How an algorithm's
networks are read is in `networks/`, by the `reader` that its row names.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from types import MappingProxyType

from rllib_compat.neutral.errors import ConfigError
from rllib_compat.neutral.public import lazy_exports
from rllib_compat.registry.rows import ROWS
from rllib_compat.registry.rows import Algorithm as Algorithm

__all__ = [
    "ALGORITHMS",
    "SUFFIXES",
    "Algorithm",
    "class_names",
    "family",
    "find",
    "keys",
    "legacy_api",
    "modules",
    "of",
    "of_policy",
    "old_names",
    "replaying",
    "todays",
    "trained",
]

__getattr__ = lazy_exports(__name__, {"": ("keys", "legacy_api", "old_names")})[0]

#: What follows the stem in a class name: Ray 0.6 – 1.13, Ray 0.5, Ray 2.0 on.
SUFFIXES = ("Trainer", "Agent", "")

#: Name → row.
ALGORITHMS = MappingProxyType({row.name: row for row in ROWS})


def find(given: str) -> Algorithm:
    """Finds an algorithm by a name of any era.

    Args:
        given: A registered name ("PPO", "contrib/MADDPG"), or the name of a trainer's or config's
            class, dotted or not ("PPOTrainer", "ray.rllib.agents.dqn.apex.ApexTrainer").

    Raises:
        ConfigError: RLlib never had an algorithm of that name.
    """
    name = given.rpartition("/")[2].rpartition(".")[2]
    endings = (suffix for suffix in ("", "Trainer", "Agent", "Config") if name.endswith(suffix))
    for candidate in (name[: len(name) - len(ending)].lower() for ending in endings):
        found = _by_lower_case().get(candidate) or _by_lower_case().get(candidate.replace("_", ""))
        if found:
            return found
    raise ConfigError(
        f"RLlib never had an algorithm {given!r}.",
        fix=f"Use one of {', '.join(row.name for row in todays())}.",
    )


def of(name: str | None) -> Algorithm:
    """The row of a name as `find` gave it.

    Raises:
        KeyError: It is not one of `ALGORITHMS`.
    """
    return ALGORITHMS[name or ""]


@cache
def _by_lower_case() -> dict[str, Algorithm]:
    return {name.lower(): row for row in ROWS for name in (row.name, *row.stems)}


@cache
def class_names() -> MappingProxyType[str, str]:
    """Every class name of every era → its algorithm."""
    return MappingProxyType(
        {f"{stem}{suffix}": row.name for row in ROWS for stem in row.stems for suffix in SUFFIXES}
    )


@cache
def modules() -> MappingProxyType[str, tuple[Algorithm, ...]]:
    """A module below `ray.rllib.agents` → the algorithms in it.

    The first is the one whose `DEFAULT_CONFIG` the module held: the others there derive from it,
    or (APPO, in PPO's folder) from one that lived elsewhere.
    """
    places: dict[str, list[Algorithm]] = {}
    for row in sorted(ROWS, key=lambda row: bool(row.derives)):
        for place in row.modules:
            places.setdefault(place, []).append(row)
    return MappingProxyType({place: tuple(rows) for place, rows in sorted(places.items())})


def todays() -> Iterator[Algorithm]:
    """The algorithms that today's Ray has; TQC is not registered, and has no legacy form."""
    return (row for row in ROWS if not row.removed)


def trained() -> Iterator[Algorithm]:
    """The algorithms that are trained by their own names: today's, and those of this package."""
    return (row for row in ROWS if row.becomes == row.name)


def family(name: str) -> tuple[str, ...]:
    """An algorithm and all that derive from it: `family("DQN")` holds DQN, SimpleQ, APEX, R2D2."""
    found = [name]
    for parent in found:  # grows as it is read
        found += [row.name for row in ROWS if row.derives == parent]
    return tuple(found)


def of_policy(name: str) -> tuple[str, ...]:
    """The algorithms whose policies had the class of one: `of_policy("DDPG")` holds TD3."""
    rows = {row.name: row for row in ROWS}
    others = (other for other in family(name) if not rows[other].own_policy)
    return (name, *(other for other in others if rows[other].derives == name))


def replaying() -> tuple[str, ...]:
    """The algorithms with a replay buffer that today's Ray has, or something in the place of."""
    return tuple(row.name for row in ROWS if row.replays and row.becomes)
