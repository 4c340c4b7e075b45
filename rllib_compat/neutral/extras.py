"""The optional packages, and the command that installs them."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from types import ModuleType
from typing import Any

from rllib_compat.neutral.errors import CompatError

__all__ = ["PACKAGE", "import_optional", "install_command"]

#: What the package is called where it is installed.
PACKAGE = "rllib-compat"


def import_optional(module: str, *, extra: str, where: str = "") -> ModuleType:
    """Imports a module that comes with an extra.

    `where` is the option or argument that needs it.

    Raises:
        CompatError: It is not installed; the error has the command that installs it.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = (error.name or module).partition(".")[0]
        raise CompatError(
            f"This needs the package {package}, which is not installed.",
            where=where,
            fix=install_command(extra),
        ) from error


def install_command(*extras: str | None) -> str:
    """The command that installs this package with extras (None: with none).

    It installs from where the package was installed before: an index, or the checkout or wheel
    that its installer noted (PEP 610), if that is still there.
    """
    from urllib.parse import urlsplit
    from urllib.request import url2pathname  # a tenth of what `inspect` takes, and seldom needed

    names = ",".join(filter(None, extras))
    wanted = names and f"[{names}]"
    origin = _origin()
    path = Path(url2pathname(urlsplit(origin.get("url", "")).path))
    if not origin.get("url", "").startswith("file:") or not path.exists():
        return f"pip install '{PACKAGE}{wanted}'" if wanted else f"pip install {PACKAGE}"
    if "dir_info" not in origin:
        return f"pip install '{PACKAGE}{wanted} @ {origin['url']}'"
    editable = "-e " if origin["dir_info"].get("editable") else ""
    return f"pip install {editable}'{path}{wanted}'"


def _origin() -> dict[str, Any]:
    """What the installer noted, as `direct_url.json` has it."""
    from importlib import metadata  # slow to import, and seldom needed

    try:
        noted: dict[str, Any] = json.loads(
            metadata.distribution(PACKAGE).read_text("direct_url.json") or "{}"
        )
    except metadata.PackageNotFoundError:
        return {}
    return noted
