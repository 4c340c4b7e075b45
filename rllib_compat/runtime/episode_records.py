"""Records of finished episodes: `RolloutMetrics` of Ray 0.5 – 2.x."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, ClassVar

from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.public import public
from rllib_compat.ray_versions import episodes

if TYPE_CHECKING:
    from rllib_compat.ray_versions.types import EnvRunner


@public("rllib_compat.adapters")
@frozen
class EpisodeRecord:
    """The record of a finished episode, which an env runner sends to the driver.

    Attributes:
        length: The number of environment steps.
        reward: The sum of all rewards of all agents.
        agent_rewards: The sums of rewards by (agent, policy).
        custom_metrics: The callbacks' metrics.
        hist_data: The callbacks' lists of values for histograms.
        media: The callbacks' objects that the result has unchanged.
        perf_stats: The mean duration of each part of a step, in ms.
    """

    length: int
    reward: float
    agent_rewards: dict[tuple[Any, str], float]
    custom_metrics: dict[str, Any] = field(default_factory=dict)
    hist_data: dict[str, list[Any]] = field(default_factory=dict)
    media: dict[str, Any] = field(default_factory=dict)
    perf_stats: dict[str, float] = field(default_factory=dict)

    #: Fields of later Rays' tuples.
    episode_faulty: ClassVar[bool] = False
    connector_metrics: ClassVar[dict[str, Any]] = {}
    #: The fields of `RolloutMetrics`, the tuple that workers sent to the driver until Ray 2.x.
    _fields: ClassVar[tuple[str, ...]] = (
        "episode_length",
        "episode_reward",
        "agent_rewards",
        "custom_metrics",
        "perf_stats",
        "hist_data",
        "media",
    )

    @property
    def episode_length(self) -> int:
        """`length`, by its name in `RolloutMetrics`."""
        return self.length

    @property
    def episode_reward(self) -> float:
        """`reward`, by its name in `RolloutMetrics`."""
        return self.reward

    def _asdict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._fields}


def take_records(env_runner: EnvRunner) -> list[EpisodeRecord]:
    """Removes the records of ended episodes from a local env runner, and returns them."""
    taken: list[EpisodeRecord] = []
    for adapter in episodes.callbacks_of(env_runner):
        taken += getattr(adapter, "ended", [])
        getattr(adapter, "ended", []).clear()
    return taken
