"""Which Ray is installed, and which ones this package knows."""

from __future__ import annotations

import logging
from functools import cache

from packaging.version import Version

from rllib_compat.neutral.errors import RayNotSupportedError
from rllib_compat.neutral.extras import install_command

OLDEST = Version("2.40")
NEWEST = Version("2.60")

logger = logging.getLogger(__name__)


@cache
def installed() -> Version:
    """The version of the installed Ray, read without importing it.

    Raises:
        RayNotSupportedError: Ray is not installed, or too old. A newer one than we know is taken,
            with one warning.
    """
    from importlib import metadata  # slow to import, and `inspect` asks for no Ray

    try:
        version = Version(metadata.version("ray"))
    except metadata.PackageNotFoundError as error:
        raise RayNotSupportedError(
            "Ray is not installed. `inspect`, `config` and `convert --to msgpack` work without it.",
            fix=install_command("ray"),
        ) from error
    if version < OLDEST:
        raise RayNotSupportedError(
            f"Ray {version} is installed; this package works with Ray {OLDEST} to {NEWEST}.",
            fix=f"{install_command('ray')} --upgrade",
        )
    if version.release[:2] > NEWEST.release[:2]:
        logger.warning(
            "Ray %s is installed, and this package was tested up to Ray %s. If a function of the "
            "newer Ray is missing, an error names it.",
            version,
            NEWEST,
        )
    return version


def at_least(release: str) -> bool:
    """Whether the installed Ray is that new; without an installed Ray, the newest is meant."""
    try:
        return installed() >= _parsed(release)
    except RayNotSupportedError:
        return True


#: Parsing takes longer than comparing, and updates ask for the same releases each time.
_parsed = cache(Version)


def trains_discrete_sac() -> bool:
    """Whether the installed Ray's SAC learns discrete actions (since 2.49)."""
    return at_least("2.49")
