"""Episodes."""

from __future__ import annotations

from typing import Any


def to_numpy(episode: Any) -> Any:
    """Turns the lists in an episode, or in one of its buffers, into arrays, in place.

    The method was called `finalize` until Ray 2.40.
    """
    (getattr(episode, "to_numpy", None) or episode.finalize)()
    return episode
