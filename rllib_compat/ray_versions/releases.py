"""Which Ray is installed, and which ones this package knows."""

from __future__ import annotations

from functools import cache
from importlib import metadata

from packaging.version import Version

from rllib_compat.neutral.errors import RayNotSupportedError

OLDEST = Version("2.40")


NEWEST = Version("2.60")


@cache
def installed() -> Version:
    """The version of the installed Ray, read without importing it.

    Raises:
        RayNotSupportedError: Ray is not installed, or too old. A newer one than we know is taken.
    """
    try:
        version = Version(metadata.version("ray"))
    except metadata.PackageNotFoundError as error:
        raise RayNotSupportedError(
            "Ray is not installed. `inspect`, `config` and `convert --to msgpack` work without it.",
            fix="pip install 'rllib-compat[ray]'",
        ) from error
    if version < OLDEST:
        raise RayNotSupportedError(
            f"Ray {version} is installed; this package works with Ray {OLDEST} to {NEWEST}.",
            fix="pip install --upgrade 'rllib-compat[ray]'",
        )
    return version


def at_least(release: str) -> bool:
    """Whether the installed Ray is that new; without an installed Ray, the newest is meant."""
    try:
        return installed() >= Version(release)
    except RayNotSupportedError:
        return True
