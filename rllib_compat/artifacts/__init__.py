"""Folders that simulators write, in the checkpoints that they belong to.

`callbacks.py` asks env runners at each checkpoint (`runners.py`: what happens there) and writes
the files and a manifest; after a restore, it hands them back. `storage.py` checks and unpacks what
a checkpoint has, without Ray.
"""

from rllib_compat.neutral.public import lazy_exports

_FILES = {
    "callbacks": ("SimulatorFolders",),
    "manifest": ("Manifest", "read_manifest"),
    "storage": ("extract", "verify"),
}

__getattr__, __dir__, __all__ = lazy_exports(__name__, _FILES)
