"""Simulators' folders in checkpoints: what collects them, and what reads them again."""

from rllib_compat.neutral.public import lazily

_FILES = {
    "collecting": ("SimulatorFolders",),
    "stored": ("Manifest", "extract", "read_manifest", "verify"),
}
HOMES = {
    name: f"rllib_compat.runtime.artifacts.{file}"
    for file, names in _FILES.items()
    for name in names
}

__getattr__, __all__ = lazily(__name__, HOMES)


def __dir__() -> list[str]:
    return __all__
