"""What `beside_old_ray.py` has recorded of an example with several seeds, as one row of a table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf, isfinite
from statistics import median
from typing import Any

SIDES = ("old", "ours")


@dataclass
class Row:
    """All runs of an example: medians over its seeds, by side.

    Attributes:
        wanted: The return at which the example stops.
        steps: After how many both sides are compared where one did not get there.
        needed: How many steps were needed; infinite where half of the runs did not get there.
        arrived: How many runs got there.
        returns: What both had after equally many steps.
        speeds: Steps per CPU second.
        speed: The median of the ratios of both speeds.
    """

    example: str
    algorithm: str
    episodes: bool
    ray: str
    seeds: list[int]
    wanted: float | None
    steps: int
    needed: dict[str, float]
    arrived: dict[str, int]
    returns: dict[str, float | None]
    speeds: dict[str, float]
    speed: float

    @property
    def learning(self) -> float | None:
        """Our median of steps, of the old one's."""
        old, ours = (self.needed[side] for side in SIDES)
        return ours / old if isfinite(old) and isfinite(ours) else None


def rows(results: Iterable[dict[str, Any]]) -> list[Row]:
    """A row for each example, and one for each that replayed episodes."""
    found: dict[tuple[str, bool], list[dict[str, Any]]] = {}
    for run in results:
        found.setdefault((run["example"], bool(run.get("episodes"))), []).append(run)
    return [_row(*key, found[key]) for key in sorted(found)]


def told(value: float | None) -> str:
    """A return as tables have it."""
    return "none" if value is None else f"{value:.0f}" if abs(value) >= 10 else f"{value:.2f}"


def _row(example: str, episodes: bool, runs: list[dict[str, Any]]) -> Row:
    sides = {side: [run["sides"][side] for run in runs] for side in SIDES}
    speeds = {side: _all(sides[side], "steps_per_cpu_second") for side in SIDES}
    returns = {side: _all(sides[side], "reward_at_equal_steps") for side in SIDES}
    needed = {side: _all(sides[side], "reached_after") for side in SIDES}
    return Row(
        example=example,
        algorithm=runs[0]["algorithm"],
        episodes=episodes,
        ray=sides["old"][0]["ray"],
        seeds=sorted(run["seed"] for run in runs),
        wanted=runs[0]["reward"],
        steps=round(median(run["steps"] for run in runs)),
        needed={
            side: median([*counts, *[inf] * (len(runs) - len(counts))])
            for side, counts in needed.items()
        },
        arrived={side: len(counts) for side, counts in needed.items()},
        returns={side: median(all_) if all_ else None for side, all_ in returns.items()},
        speeds={side: median(all_) for side, all_ in speeds.items()},
        speed=median(ours / old for old, ours in zip(*speeds.values(), strict=True)),
    )


def _all(sides: list[dict[str, Any]], what: str) -> list[float]:
    return [side[what] for side in sides if side[what] is not None]
