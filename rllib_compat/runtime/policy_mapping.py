"""Policy mapping functions: their legacy arguments, and replacements for those of checkpoints."""

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

#: The id of the agent of a single-agent environment.
ONLY_AGENT = "agent0"

#: The id of a single policy until Ray 0.5, which was the default of `compute_action`.
_OLDEST_ONLY_POLICY = "default"


def resolve_policy_id(policy_id: str, policies: Container[str]) -> str:
    """Returns the current id of a policy of old code.

    A multi-agent config without policies also had the default policy, which is `SHARED` here.
    """
    if policy_id in policies or policy_id not in (ONLY_POLICY, _OLDEST_ONLY_POLICY):
        return policy_id
    return SHARED if SHARED in policies else ONLY_POLICY


class MappedEpisode:
    """An episode with an integer `episode_id`, by which mapping functions assigned policies."""

    def __init__(self, episode: Any) -> None:
        self._episode = episode

    @property
    def episode_id(self) -> int:
        """The episode's id as an integer."""
        return episode_number(self._episode.id_)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._episode, name)


def episode_number(episode_id: object) -> int:
    """Converts an episode's id to an integer, the same in each process."""
    return zlib.crc32(str(episode_id).encode())


class MappingContext:
    """The objects of this process that mapping functions may get.

    Attributes:
        worker: The worker around the env runner that started the last episode.
    """

    worker: Any = None


@public("rllib_compat.adapters")
@frozen
class PolicyOfSameName:
    """A mapping function from an agent to the policy with its id.

    Attributes:
        policies: The ids of the policies.
    """

    policies: tuple[str, ...]

    def __call__(self, agent_id: object, episode: object = None, **kwargs: object) -> str:
        """Returns the policy's id.

        Raises:
            LegacyEnvError: There is no policy of this name.
        """
        del episode, kwargs
        if str(agent_id) in self.policies:
            return str(agent_id)
        raise LegacyEnvError(
            f"There is no policy {agent_id!r} for the agent of that id; the policies are "
            f"{', '.join(self.policies)}.",
            where="policy_mapping_fn",
            fix="set the mapping function: config.multi_agent(policy_mapping_fn=…); the "
            "checkpoint's own is code, which is not executed",
        )


@public("rllib_compat.adapters")
def policy_by_number(agent_id: object, episode: object = None, **kwargs: object) -> str:
    """Maps agent 0 to the policy `p0`: the `PolicyMappingFn` of the examples of Ray 2.0 – 2.9."""
    del episode, kwargs
    return f"p{agent_id}"


@public("rllib_compat.adapters")
class MappingFn:
    """A legacy `policy_mapping_fn`, which takes the installed Ray's arguments: agent and episode.

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
        self, agent_id: object, episode: object = None, worker: object = None, **more: object
    ) -> Any:
        """Returns the policy of an agent; the new API stack does not pass the worker."""
        worker = worker if worker is not None else MappingContext.worker
        if hasattr(episode, "id_") and not hasattr(episode, "episode_id"):  # of the new API stack
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
