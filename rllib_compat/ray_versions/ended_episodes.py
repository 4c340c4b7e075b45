"""Episodes that have ended, which some Rays pass through a pipeline twice."""

from __future__ import annotations

from typing import Any


class ReadsEndedOnce:
    """What an env runner for many agents needs to read an episode that has ended once.

    Of as many episodes as were asked for, Ray 2.41 - 2.58 pass the last one twice when it has
    ended: once with all that have, and once with all that there are. A connector that writes would
    write what it has written: observations are made flat a second time, which fails, or filtered.
    """

    _env_to_module: Any

    def sample(self, **asked: Any) -> list[Any]:
        """Samples, with a pipeline that knows what it has seen."""
        rays = self._env_to_module
        self._env_to_module = _Once(rays)
        try:
            return super().sample(**asked)  # type: ignore[misc,no-any-return]
        finally:
            self._env_to_module = rays


class _Once:
    """Stands in the place of a pipeline to modules."""

    def __init__(self, pipeline: Any) -> None:
        self._pipeline, self._ended = pipeline, set[Any]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pipeline, name)

    def __call__(self, *, episodes: list[Any], **given: Any) -> Any:
        """What the pipeline does with episodes, but for those that it has seen at their end."""
        left = [episode for episode in episodes if episode.id_ not in self._ended]
        self._ended.update(episode.id_ for episode in left if episode.is_done)
        return self._pipeline(episodes=left, **given) if left or not episodes else {}
