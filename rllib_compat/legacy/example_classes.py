"""Classes of today's example environments with the API that they had when old code was written."""

from __future__ import annotations

import os
from functools import cache, wraps
from typing import Any

from rllib_compat.legacy.table import MIRROR
from rllib_compat.runtime.handed_out import TODAYS_GYM

_ENVS = "ray.rllib.examples.env."
#: Classes around a `CartPole-v0`, which ends after 200 steps; today's Ray has `CartPole-v1` there.
#: Each with the attribute that holds it.
_AROUND_CARTPOLE = {
    "CartPoleSparseRewards": "env",
    "MockVectorEnv": "env",
    "ParametricActionsCartPole": "wrapped",
    "ParametricActionsCartPoleNoEmbeddings": "wrapped",
}


def with_old_api(place: str, name: str, today: Any) -> Any:
    """An environment's class with the old API; anything else as it is.

    Code that imports gymnasium itself gets today's classes.

    Args:
        place: The old module that is asked.
        name: The name in it.
        today: What today's Ray has.
    """
    if not place.startswith(_ENVS) or not isinstance(today, type) or os.environ.get(TODAYS_GYM):
        return today
    import gymnasium

    from rllib_compat.gym import old_classes

    if hasattr(today, "vector_step"):
        kind: type | None = old_classes.OldVectorEnv
    elif hasattr(today, "with_agent_groups"):
        kind = old_classes.OldMultiAgentEnv
    elif issubclass(today, gymnasium.Env):
        kind = None if name in _AROUND_CARTPOLE else old_classes.OldEnvWithoutLimit
    else:
        return today
    old = old_classes.old_class(name, today, f"{MIRROR}.{place}", kind)
    return _around_cartpole_v0(old) if name in _AROUND_CARTPOLE else old


@cache
def _around_cartpole_v0(old: Any) -> Any:
    import gymnasium

    first = old.__init__

    @wraps(first)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        first(self, *args, **kwargs)
        setattr(self, _AROUND_CARTPOLE[old.__name__], gymnasium.make("CartPole-v0"))

    old.__init__ = init
    return old
