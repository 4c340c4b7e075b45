"""What is told of an episode that is over: `RolloutMetrics` of Ray 0.5 – 2.x."""

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
    """What an env runner sends to the driver about one finished episode, as RLlib always did.

    Attributes:
        length: Its environment steps.
        reward: The sum of all rewards of all agents.
        agent_rewards: The same by (agent, policy).
        custom_metrics: What the callbacks put there.
        hist_data: Lists of values for histograms.
        media: Whatever the callbacks want to see in the result as it is.
        perf_stats: How long a step took in the mean, part by part, in milliseconds.
    """

    length: int
    reward: float
    agent_rewards: dict[tuple[Any, str], float]
    custom_metrics: dict[str, Any] = field(default_factory=dict)
    hist_data: dict[str, list[Any]] = field(default_factory=dict)
    media: dict[str, Any] = field(default_factory=dict)
    perf_stats: dict[str, float] = field(default_factory=dict)

    #: What later tuples had besides.
    episode_faulty: ClassVar[bool] = False
    connector_metrics: ClassVar[dict[str, Any]] = {}
    #: The fields of `RolloutMetrics`, the tuple that workers told the driver until Ray 2.x.
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
        """Its environment steps, by the name in `RolloutMetrics`."""
        return self.length

    @property
    def episode_reward(self) -> float:
        """The sum of all rewards, by the name in `RolloutMetrics`."""
        return self.reward

    def _asdict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._fields}


def take_records(env_runner: EnvRunner) -> list[EpisodeRecord]:
    """Takes the episodes that have ended out of a runner; runs where the runner is."""
    taken: list[EpisodeRecord] = []
    for adapter in episodes.callbacks_of(env_runner):
        taken += getattr(adapter, "ended", [])
        getattr(adapter, "ended", []).clear()
    return taken
