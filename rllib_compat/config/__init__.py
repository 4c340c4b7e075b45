"""Translation of legacy configs: rules as data, and the engine that applies them.

::

    dict ─ rules ─► settings ─ steps ─► calls ─ build ─► AlgorithmConfig
             └──────────┴─► report             └─ to_python ─► code

The public names are imported when they are asked for: who only wants to know the algorithm of a
checkpoint (`inspect`) does not wait for all the rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rllib_compat.neutral.public import lazy_exports

if TYPE_CHECKING:
    from rllib_compat.config.translation import Translation as Translation
    from rllib_compat.config.translator import translate as translate
    from rllib_compat.config.values.validator import Origin as Origin
    from rllib_compat.registry.keys import default_config as default_config
    from rllib_compat.registry.keys import find_algorithm as find_algorithm

_FILES = {
    "config.code": ("python_code",),
    "config.era": ("Era", "infer as infer_era"),
    "config.files": ("Experiment", "read_data", "read_experiments"),
    "config.rules.offline": ("learns_on_old_stack",),
    "config.rules": ("every_rule", "find as find_rule"),
    "config.translation": ("Translation",),
    "config.translator": ("translate",),
    "config.validation": ("validate_config",),
    "config.values.validator": ("Origin",),
    "registry.keys": ("default_config", "find_algorithm"),
}

__getattr__, __dir__, __all__ = lazy_exports(__name__, _FILES, package="rllib_compat")
