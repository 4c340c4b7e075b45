"""Environments that user code gets from trainers and workers, and steps by itself.

gym's names are made by gymnasium today, whose `reset` and `step` return more. Code that runs as it
is expects those of gym, unless it imports gymnasium itself.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, ClassVar

#: Set where the user's code imports gymnasium; Ray's workers inherit it.
TODAYS_GYM = "RLLIB_COMPAT_TODAYS_GYM"


class OldGymApi:
    """Whether user code in this process was written for gym.

    Attributes:
        wrapper: Gives an environment of gymnasium gym's API; None where user code expects today's.
    """

    wrapper: ClassVar[Callable[[Any], Any] | None] = None


def with_user_api(env: Any) -> Any:
    """The environment with the API that the user's code was written for."""
    from rllib_compat.runtime.gym_api import is_todays

    if OldGymApi.wrapper is None or os.environ.get(TODAYS_GYM):
        return env
    made_by_name = getattr(getattr(env, "unwrapped", env), "spec", None) is not None
    return OldGymApi.wrapper(env) if made_by_name and is_todays(env) else env
