"""Which policy an agent gets: what mapping functions see, and what stands in for a lost one."""

from __future__ import annotations

import inspect
import zlib
from collections.abc import Callable, Container
from typing import Any

from rllib_compat.neutral.errors import LegacyEnvError
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.policy_id import ONLY_POLICY as ONLY_POLICY
from rllib_compat.neutral.policy_id import SHARED
from rllib_compat.neutral.public import public

#: Who acts where there is one agent only.
ONLY_AGENT = "agent0"

#: What the only policy was called up to Ray 0.5; `compute_action` had it as its default.
_OLDEST_ONLY_POLICY = "default"


def resolve_policy_id(policy_id: str, policies: Container[str]) -> str:
    """What a policy that old code asks for is called here.

    The one policy of many agents was the default one, too, where a config named none.
    """
    if policy_id in policies or policy_id not in (ONLY_POLICY, _OLDEST_ONLY_POLICY):
        return policy_id
    return SHARED if SHARED in policies else ONLY_POLICY


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


def episode_number(episode_id: object) -> int:
    """An episode's id as the number that it was: any, but the same in each process."""
    return zlib.crc32(str(episode_id).encode())


class MappingContext:
    """What of this process mapping functions may ask for.

    Attributes:
        worker: The legacy view of the env runner that has begun an episode last.
    """

    worker: Any = None


@public("rllib_compat.adapters")
@frozen
class PolicyOfSameName:
    """Maps an agent to the policy of its own name.

    Attributes:
        policies: The ids of the policies.
    """

    policies: tuple[str, ...]

    def __call__(self, agent_id: object, episode: object = None, **kwargs: object) -> str:
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


@public("rllib_compat.adapters")
def policy_by_number(agent_id: object, episode: object = None, **kwargs: object) -> str:
    """Maps agent 0 to the policy `p0`: the `PolicyMappingFn` of the examples of Ray 2.0 – 2.9."""
    del episode, kwargs
    return f"p{agent_id}"


@public("rllib_compat.adapters")
class MappingFn:
    """A legacy `policy_mapping_fn`, called as today's Ray does: with the agent and its episode.

    Args:
        legacy: A function of (agent_id), (agent_id, episode), (agent_id, episode, worker), with or
            without `**kwargs`.
    """

    def __init__(self, legacy: Callable[..., Any]) -> None:
        self.legacy = legacy
        try:
            parameters = inspect.signature(legacy).parameters.values()
        except (TypeError, ValueError):  # a builtin: it takes the agent only
            parameters = ()  # type: ignore[assignment]
        positional = [
            p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ]
        self._takes = {p.name for p in positional if p.kind is not p.POSITIONAL_ONLY} | {
            p.name for p in parameters if p.kind is p.KEYWORD_ONLY
        }
        self._positional = [p.name for p in positional]
        self._any_keyword = any(p.kind is p.VAR_KEYWORD for p in parameters)
        self._any_positional = any(p.kind is p.VAR_POSITIONAL for p in parameters)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.legacy!r})"

    def __call__(
        self, agent_id: Any, episode: object = None, worker: Any = None, **more: Any
    ) -> Any:
        """The policy of an agent; the new API stack does not say which worker asks."""
        worker = worker if worker is not None else MappingContext.worker
        if hasattr(episode, "id_") and not hasattr(episode, "episode_id"):  # an episode of today
            episode = MappedEpisode(episode)
        rest = [("episode", episode), ("worker", worker)]
        count = 2 if self._any_positional else max(0, len(self._positional) - 1)
        arguments = [value for _, value in rest[:count]]
        offered = dict(rest[count:]) | more
        keywords = {
            name: value
            for name, value in offered.items()
            if self._any_keyword or name in self._takes
        }
        return self.legacy(agent_id, *arguments, **keywords)
