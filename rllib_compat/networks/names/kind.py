"""What a network is made of, told by the names of its arrays."""

from __future__ import annotations

import re
from collections.abc import Iterable

from rllib_compat.networks.trunks.complex import COMPLEX, is_complex
from rllib_compat.networks.trunks.dense import DENSE
from rllib_compat.networks.trunks.trunk import Trunk
from rllib_compat.networks.trunks.vision import VISION
from rllib_compat.neutral.checkpoint import PolicyState

ATTENTION, LSTM = "attention (GTrXL)", "LSTM"

#: Words in names, and the wrappers that they give away.
_WRAPPERS = (
    (re.compile(r"gtrxl|attention", re.I), ATTENTION),
    (re.compile(r"lstm|rnn", re.I), LSTM),
)

_CONVOLUTION = re.compile(r"(^|[/._])_?conv|\.cnn\.", re.I)


def trunk_of(names: Iterable[str], policy: PolicyState | None = None) -> Trunk:
    """The base model of arrays with these names, for a policy's observations."""
    names = list(names)
    if policy is not None and is_complex(policy, names):
        return COMPLEX
    return VISION if any(_CONVOLUTION.search(name) for name in names) else DENSE


def wrapper_of(names: Iterable[str]) -> str | None:
    """What is wrapped around the base model of arrays with these names."""
    names = list(names)
    return next((kind for sign, kind in _WRAPPERS if any(map(sign.search, names))), None)
