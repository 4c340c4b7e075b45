"""Episodes that a limit has cut: the old `step` had one flag, `done`, for an end and for a cut."""

from __future__ import annotations

from typing import Any


def end_at_cut(chunk: Any) -> None:
    """Lets an episode that was cut, or a chunk that is the last of one, be over, in place.

    Algorithms expect something after a cut, and nothing after an end.

    Args:
        chunk: A `SingleAgentEpisode`, or a `MultiAgentEpisode` with those of its agents.
    """
    for part in (chunk, *getattr(chunk, "agent_episodes", {}).values()):
        if part.is_truncated:
            part.is_terminated, part.is_truncated = True, False
