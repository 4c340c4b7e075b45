"""Which policy an agent gets: what mapping functions see, and what stands in for a lost one."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any

from rllib_compat.errors import LegacyEnvError


class MappedEpisode:
    """Today's episode, with the number that mapping functions let decide who plays which side.

    Args:
        episode: A `MultiAgentEpisode`.
    """

    def __init__(self, episode: Any) -> None:
        self._episode = episode

    @property
    def episode_id(self) -> int:
        """The episode's id as a number."""
        return episode_number(self._episode.id_)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._episode, name)


def episode_number(episode_id: Any) -> int:
    """An episode's id as the number that it was: any, but the same in each process."""
    return zlib.crc32(str(episode_id).encode())


@dataclass(frozen=True)
class PolicyOfSameName:
    """Maps an agent to the policy of its own name.

    Attributes:
        policies: The ids of the policies.
    """

    policies: tuple[str, ...]

    def __call__(self, agent_id: Any, episode: Any = None, **kwargs: Any) -> str:
        """The policy's id.

        Raises:
            LegacyEnvError: There is no policy of this name.
        """
        del episode, kwargs
        if str(agent_id) in self.policies:
            return str(agent_id)
        raise LegacyEnvError(
            f"No policy is named like the agent {agent_id!r}; there are "
            f"{', '.join(self.policies)}.",
            where="policy_mapping_fn",
            fix="The checkpoint's mapping function was code and was not executed. Give it again: "
            "config.multi_agent(policy_mapping_fn=…).",
        )
