"""What is kept of one agent's episode, within bounds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from rllib_compat.neutral.errors import CompatError

KINDS = ("running", "final", "media")


class Series:
    """One running value over an episode: exact sums, and the first values themselves.

    Args:
        most: How many values are kept.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.values: list[Any] = []
        self.count = 0
        self.numbers = 0
        self.sum: float = 0
        self.min: float = math.inf
        self.max: float = -math.inf

    def add(self, value: object) -> None:
        """Takes the value of another step."""
        self.count += 1
        if self.count <= self._most:
            self.values.append(value)
        if isinstance(value, (int, float)):
            self.numbers += 1
            self.sum += value
            self.min = min(self.min, value)
            self.max = max(self.max, value)

    @property
    def mean(self) -> float:
        """The mean of those that are numbers."""
        return self.sum / self.numbers

    def record(self) -> dict[str, Any]:
        """What goes into the file; without aggregates where there was no number."""
        record: dict[str, Any] = {"count": self.count, "values": self.values}
        if self.numbers:
            record |= {"mean": self.mean, "sum": self.sum, "min": self.min, "max": self.max}
        return record


class AgentData:
    """What is kept of one agent's episode.

    Args:
        most: How many values of each running series, and how many of each media, are kept.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.running: dict[str, Series] = {}
        self.final: dict[str, Any] = {}
        self.media: dict[str, list[Any]] = {}
        self.media_left_out: dict[str, int] = {}
        #: The last news of an agent that may wait, as `LegacyEpisode.last_change_of` has them.
        self.news: Any = None

    def add(self, kind: str, data: Mapping[str, Any]) -> None:
        """Takes what one step says; arrays and lists are copied, for environments reuse them."""
        for name, value in data.items():
            plain = plain_copy(value, f"{kind} → {name}")
            if kind == "final":
                self.final[name] = plain
            elif kind == "running":
                self.running.setdefault(name, Series(self._most)).add(plain)
            elif len(kept := self.media.setdefault(name, [])) < self._most:
                kept.append(plain)
            else:
                self.media_left_out[name] = self.media_left_out.get(name, 0) + 1

    def record(self) -> dict[str, Any]:
        """What goes into the file."""
        record: dict[str, Any] = {
            "running": {name: series.record() for name, series in self.running.items()},
            "final": self.final,
            "media": self.media,
        }
        return record | ({"media_left_out": self.media_left_out} if self.media_left_out else {})

    def metrics(self) -> dict[str, float]:
        """What reaches the result: `<name>_avg` and `<name>_sum`, and final numbers as they are."""
        found = {n: float(v) for n, v in self.final.items() if isinstance(v, (int, float))}
        for name, series in self.running.items():
            if series.numbers:
                found |= {f"{name}_avg": series.mean, f"{name}_sum": series.sum}
        return found


def plain_copy(value: object, where: str) -> Any:
    """A copy of numbers, texts, lists, dicts and arrays that JSON has a form for.

    Raises:
        CompatError: There is something else in it.
    """
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, np.generic):
        return plain_copy(value.item(), where)
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        return value.copy()  # a list takes several times the memory
    if isinstance(value, np.ndarray) and value.dtype.kind in "OU":
        return plain_copy(value.tolist(), where)
    if isinstance(value, Mapping):
        return {str(name): plain_copy(v, f"{where} → {name}") for name, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_copy(inner, where) for inner in value]
    raise CompatError(
        f"An object of type {type(value).__name__} can't be recorded.",
        where=where,
        fix="Put only numbers, texts, lists, dicts and arrays into what is recorded.",
    )
