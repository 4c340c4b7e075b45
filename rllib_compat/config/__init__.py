"""Translation of legacy configs: rules as data, and the engine that applies them.

::

    dict ─ rules ─► settings ─ settle ─► calls ─ build ─► AlgorithmConfig
             └──────────┴─► report             └─ to_python ─► code
"""

from rllib_compat.config.algorithms import find_algorithm
from rllib_compat.config.keys import default_config
from rllib_compat.config.translate import translate
from rllib_compat.config.translation import Translation

__all__ = ["Translation", "default_config", "find_algorithm", "translate"]
