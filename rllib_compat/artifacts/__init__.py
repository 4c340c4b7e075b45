"""Simulators' folders in checkpoints: what collects them, and what reads them again."""

from rllib_compat.neutral.public import lazy_exports

_FILES = {
    "collecting": ("SimulatorFolders",),
    "manifest": ("Manifest", "read_manifest"),
    "stored": ("extract", "verify"),
}

__getattr__, __all__ = lazy_exports(__name__, "rllib_compat.runtime.artifacts", _FILES)


def __dir__() -> list[str]:
    return __all__
