"""Old imports in today's Python: `import rllib_compat.legacy` as a script's first line.

From then on, `ray`, `gym` and removed names of numpy look to the user's own code as they did when
it was written; to everybody else, Ray's own modules and installed libraries among them, nothing has
changed. `rllib-compat run script.py` does the same without a change to the script.

How it works: an import statement calls `builtins.__import__`. A function that looks which code
imports replaces it (`import_hooks`), and gives user code old modules, below
`rllib_compat.legacy.old`. Their names are looked up in a table (`registry.old_names`) when they are
used (`modules`).
"""

from __future__ import annotations

from rllib_compat.legacy.activation import activate, activate_worker, deactivate, is_active
from rllib_compat.neutral.public import lazy_exports

__all__ = ["activate", "deactivate", "is_active"]

_FILES = {"modules": ("is_removed", "lookup", "redirected")}

__getattr__, _, _lazy = lazy_exports(__name__, _FILES)
__all__ += _lazy

activate_worker()  # outside of a worker: `activate()`
