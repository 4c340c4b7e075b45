"""What the adapters of single-agent and of multi-agent environments share."""

from __future__ import annotations

from typing import Any


class WrapsLegacyEnv:
    """An environment around a legacy one, which answers whatever this one does not know.

    Attributes:
        env: The legacy environment.
        wraps_legacy_env: Tells the adapters from environments of today.
    """

    env: Any
    wraps_legacy_env = True

    def render(self, mode: str | None = None) -> Any:
        """Renders as the wrapped environment does, which took the mode here."""
        return self.env.render() if mode is None else self.env.render(mode=mode)

    def close(self) -> None:
        """Closes the wrapped environment, if it can be closed."""
        getattr(self.env, "close", lambda: None)()

    def __getattr__(self, name: str) -> Any:
        if name in ("env", "__setstate__"):
            raise AttributeError(name)
        return getattr(self.env, name)


def metadata_of(env: Any) -> dict[str, Any]:
    """The metadata of a legacy environment, complete as gymnasium wants it."""
    return {"render_modes": [], **(getattr(env, "metadata", None) or {})}
