"""Episodes, and the callbacks that receive them."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Any

from rllib_compat.ray_versions import renames
from rllib_compat.ray_versions.types import MultiAgentEpisode


def to_numpy(episode: object) -> Any:
    """Turns the lists in an episode, or in one of its buffers, into arrays, in place."""
    renames.method(episode, "to_numpy")()
    return episode


def agents_that_stepped(episode: MultiAgentEpisode) -> AbstractSet[Any]:
    """The agents of an episode that have observed something at its last step.

    `get_agents_that_stepped` answers the same, and copies all their observations for it.
    """
    tag = episode.SKIP_ENV_TS_TAG
    return {
        agent_id
        for agent_id, steps in episode.env_t_to_agent_t.items()
        if steps.data and steps.data[-1] != tag and agent_id in episode.agent_episodes
    }


def agents_to_act(episode: MultiAgentEpisode) -> list[Any]:
    """The agents of an episode that act next: those that have stepped, and are not done."""
    parts = episode.agent_episodes
    return [agent for agent in agents_that_stepped(episode) if not parts[agent].is_done]


def callback_class() -> Any:
    """The base of callbacks."""
    return renames.resolve("RLlibCallback")


def callbacks_of(runner_or_algorithm: Any) -> list[Any]:
    """The callback objects of an env runner or algorithm; one object until Ray 2.40."""
    held = getattr(runner_or_algorithm, "_callbacks", None) or runner_or_algorithm.callbacks
    return held if isinstance(held, list) else [held]
