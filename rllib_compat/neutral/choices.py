"""Arguments that are one of a few texts."""

from __future__ import annotations

from collections.abc import Sequence

from rllib_compat.neutral.errors import ConfigError


def require_one_of(choices: Sequence[str], **given: object) -> None:
    """Checks arguments, by name.

    Raises:
        ConfigError: One is none of the choices.
    """
    for name, value in given.items():
        if value not in choices:
            raise ConfigError(
                f"{name} cannot be {value!r}.", where=name, fix=f"Use one of {', '.join(choices)}."
            )
