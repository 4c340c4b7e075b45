"""Translation of legacy configs: rules as data, and the engine that applies them.

::

    dict ─ rules ─► settings ─ steps ─► calls ─ build ─► AlgorithmConfig
             └──────────┴─► report             └─ to_python ─► code

The public names are imported when they are asked for: who only wants to know the algorithm of a
checkpoint (`inspect`) does not wait for all the rules.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rllib_compat.config.translation import Translation as Translation
    from rllib_compat.config.translator import translate as translate
    from rllib_compat.config.values.validator import Origin as Origin
    from rllib_compat.registry.keys import default_config as default_config
    from rllib_compat.registry.keys import find_algorithm as find_algorithm

_HOMES = {
    "Origin": "rllib_compat.config.values.validator",
    "Translation": "rllib_compat.config.translation",
    "default_config": "rllib_compat.registry.keys",
    "find_algorithm": "rllib_compat.registry.keys",
    "translate": "rllib_compat.config.translator",
}

__all__ = ["Origin", "Translation", "default_config", "find_algorithm", "translate"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
