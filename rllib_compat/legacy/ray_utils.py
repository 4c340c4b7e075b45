"""`ray.utils` of Ray 0.5 – 1.x: what scripts used of it."""

from __future__ import annotations

import os
import tempfile

__all__ = ["get_ray_temp_dir", "get_user_temp_dir"]


def get_user_temp_dir() -> str:
    """The folder for temporary files."""
    return os.environ.get("RAY_TMPDIR") or tempfile.gettempdir()


def get_ray_temp_dir() -> str:
    """Ray's own folder in it."""
    return os.path.join(get_user_temp_dir(), "ray")  # noqa: PTH118 - a text, as it was
