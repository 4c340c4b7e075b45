"""The errors of this package, for `except`: all of them are `CompatError`s."""

from rllib_compat.neutral.errors import (
    BudgetExceededError,
    CheckpointError,
    CompatError,
    ConfigError,
    CorruptCheckpointError,
    GoneError,
    LegacyEnvError,
    MissingInformationError,
    NotConvertibleError,
    NotYetError,
    RayNotSupportedError,
    RefusedKeysError,
    TargetExistsError,
    UnknownKeysError,
    UnknownLayoutError,
    VerificationError,
)

__all__ = [
    "BudgetExceededError",
    "CheckpointError",
    "CompatError",
    "ConfigError",
    "CorruptCheckpointError",
    "GoneError",
    "LegacyEnvError",
    "MissingInformationError",
    "NotConvertibleError",
    "NotYetError",
    "RayNotSupportedError",
    "RefusedKeysError",
    "TargetExistsError",
    "UnknownKeysError",
    "UnknownLayoutError",
    "VerificationError",
]
