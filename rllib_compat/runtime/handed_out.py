"""Environments that trainers and workers hand to code that steps them itself.

gym's names are made by gymnasium today, whose `reset` and `step` return more. Code that runs as it
is expects those of gym, unless it imports gymnasium itself.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, ClassVar

#: Set where the user's code imports gymnasium; Ray's workers inherit it.
TODAYS_GYM = "RLLIB_COMPAT_TODAYS_GYM"


class HandedOut:
    """How environments are handed out in this process.

    Attributes:
        as_old: Makes one of gymnasium's an old one; None where no old code runs as it is.
    """

    as_old: ClassVar[Callable[[Any], Any] | None] = None


def handed_out(env: Any) -> Any:
    """The environment with the API that the user's code was written for."""
    from rllib_compat.runtime.gym_api import is_todays

    if HandedOut.as_old is None or os.environ.get(TODAYS_GYM):
        return env
    made_by_name = getattr(getattr(env, "unwrapped", env), "spec", None) is not None
    return HandedOut.as_old(env) if made_by_name and is_todays(env) else env
