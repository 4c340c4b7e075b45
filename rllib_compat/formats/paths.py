"""The path of this machine that a caller means: every argument for one passes here."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import unquote

from rllib_compat.neutral.errors import FileSystemError

# `Path` makes one slash of two.
_ADDRESS = re.compile(r"(?P<scheme>[a-z][a-z0-9+]{1,9}):/(?P<rest>.*)", re.IGNORECASE | re.DOTALL)
_DOWNLOADS = {
    "s3": "aws s3 cp --recursive",
    "gs": "gcloud storage cp -r",
    "hdfs": "hdfs dfs -get",
    "http": "curl -LO",
    "https": "curl -LO",
}
_HERE = ("", "localhost")
#: The params of a trial, and in how many folders above a checkpoint they may be: `params.pkl` keeps
#: tuples, spaces and classes, `params.json` has only their `repr`.
PARAMS = ("params.pkl", "params.json")
#: The results of a trial; the first of them that is there is read: `progress.csv` has less in it.
RESULTS = ("result.json", "progress.csv")
LEVELS_UP = 3


def split_address(place: str | os.PathLike[str]) -> tuple[str, str]:
    """The scheme of an address and what follows the slashes; without a scheme for a path."""
    text = os.fspath(place)
    found = _ADDRESS.match(text)
    if found is None or Path(text).exists():
        return "", text
    return found["scheme"].lower(), found["rest"].lstrip("/")


def is_address(place: str | os.PathLike[str]) -> bool:
    """Whether somebody means a place in a store, and not a path of this machine."""
    scheme, _ = split_address(place)
    return scheme not in ("", "file", "http", "https")


def local_path(place: str | os.PathLike[str]) -> Path:
    """The path that a caller means: a leading `~` is the home folder, `file:///a` is `/a`.

    Relative paths stay so.

    Raises:
        FileSystemError: It is the address of something on another machine.
    """
    text = os.fspath(place)
    found = _ADDRESS.match(text)
    if found is None or Path(text).exists():
        try:
            return Path(text).expanduser()
        except RuntimeError:  # `~somebody` who is not there
            return Path(text)
    scheme, rest = found["scheme"].lower(), found["rest"]
    if scheme == "file":
        host, slash, path = rest[1:].partition("/") if rest.startswith("/") else ("", "/", rest)
        if slash and host in _HERE:
            return Path(unquote(f"/{path}"))
        fix = f"Give /{rest.lstrip('/')} or file:///{rest.lstrip('/')}, if that is meant."
        raise FileSystemError(f"The address names a machine, {host!r}.", where=text, fix=fix)
    fetch, rest = _DOWNLOADS.get(scheme, "a copy of"), rest.lstrip("/")
    raise FileSystemError(
        "It is a URL, not a path.",
        where=text,
        fix=f"Use a path of this machine; `{fetch} {scheme}://{rest} .` downloads what is there.",
    )


def storage_path(place: str | os.PathLike[str]) -> str:
    """A folder as pyarrow and today's Tune take it: an address as it is, a path from the root."""
    text = os.fspath(place)
    found = _ADDRESS.match(text)
    is_elsewhere = found is not None and found["scheme"].lower() != "file"
    return text if is_elsewhere else str(local_path(text).absolute())
