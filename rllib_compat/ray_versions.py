"""Every difference between the supported Ray releases.

No other module asks which Ray is installed. Each function here has one meaning for all releases,
and its comment says which release changed what.
"""

from __future__ import annotations

from functools import cache
from importlib import metadata

from packaging.version import Version

from rllib_compat.errors import RayNotSupportedError

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
            "Ray is not installed.",
            fix=f"pip install 'ray[rllib,tune]>={OLDEST},<={NEWEST}.*' torch",
        ) from error
    if version < OLDEST:
        raise RayNotSupportedError(
            f"Ray {version} is installed; this package works with Ray {OLDEST} to {NEWEST}.",
            fix=f"pip install 'ray[rllib,tune]>={OLDEST}'",
        )
    return version


def writes_checkpoint_version() -> str:
    """The version of the Checkpointable format that the installed Ray writes.

    Ray 2.40 – 2.43 write 2.0, Ray 2.44 and later 2.1 (`ray/rllib/utils/checkpoints.py`).
    """
    return "2.1" if installed() >= Version("2.44") else "2.0"
