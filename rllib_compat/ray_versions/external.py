"""Ray's `ExternalEnv` from its other end (`ray/rllib/env/external_env.py`; Ray 2.40 – 2.60)."""

from __future__ import annotations

from threading import Condition
from typing import Any


def ongoing_episodes(env: Any) -> dict[Any, Any]:
    """The episodes that the simulator's thread has started, by id; the dict itself."""
    return env._episodes  # type: ignore[no-any-return]  # Ray has no types


def news(env: Any) -> Condition:
    """What is notified when an episode has something to say."""
    return env._results_avail_condition  # type: ignore[no-any-return]  # Ray has no types
