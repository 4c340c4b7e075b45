"""The RLModules that converted checkpoints name; they stay here, wherever their files are.

Each computes a network that today's default modules cannot represent, and trains like any module of
Ray. `rllib_compat` has to be installed where such a checkpoint is loaded.
"""

import re
from pathlib import Path

from rllib_compat.neutral.public import lazy_exports

_MODULES = Path(__file__).parents[1] / "networks" / "modules"
_PUBLIC = re.compile(rf'^@public\("{__name__}"\)\n(?:class|def) (\w+)', re.MULTILINE)

#: Its classes and functions by file: those that are marked, so that none has to be listed here.
_FILES = {file.stem: _PUBLIC.findall(file.read_text("utf-8")) for file in _MODULES.glob("*.py")}

__getattr__, __dir__, __all__ = lazy_exports(
    __name__, _FILES, package="rllib_compat.networks.modules"
)
