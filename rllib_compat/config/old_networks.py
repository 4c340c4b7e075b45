"""What only networks of the old Rays had, where a trainer makes those (`networks.fresh`)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rllib_compat import registry
from rllib_compat.networks import fresh

#: The rules of keys that today's networks have nothing for.
_ONLY_OLD = r"model\.no_final_linear|sac\.Q_model\..*"
_ATTENTION = r"|model\.(use_attention|attention_\w+)"

#: The readers of networks that an attention net is put into.
_ACTOR_CRITICS = ("actor_critic", "appo")

#: How many steps an attention net remembers: in training and in acting, 50 by default.
_MEMORIES = ("attention_memory_training", "attention_memory_inference")


def kept(algorithm: str, config: Mapping[str, Any]) -> re.Pattern[str] | None:
    """The rules of the keys that the old networks have, and today's have not.

    Args:
        algorithm: The algorithm's legacy name.
        config: The legacy config.

    Returns:
        What their ids look like; None: networks are today's.
    """
    if not fresh.makes(algorithm, config):
        return None
    return re.compile(_ONLY_OLD + (_ATTENTION if _takes_attention(algorithm, config) else ""))


def _takes_attention(algorithm: str, config: Mapping[str, Any]) -> bool:
    """Whether attention nets train on the new API stack, where all steps have one memory."""
    model = config.get("model")
    told = model if isinstance(model, Mapping) else {}
    training, acting = (told.get(key, 50) for key in _MEMORIES)
    row = registry.of(algorithm)
    return row.reader in _ACTOR_CRITICS and not row.offline and bool(training == acting)
