"""Where copies of files came from, so that messages name the address and not the copy."""

from __future__ import annotations

import re
from pathlib import Path

#: The address of what a folder of this machine has a copy of.
_ADDRESSES: dict[str, str] = {}
_SECRETS = re.compile(
    r"(?<=://)[^/@:]*:[^/@]*@|[^?&]*(?:key|secret|token|password|sig)[^&=]*=[^&]*&?", re.IGNORECASE
)


def note(folder: Path, address: str) -> None:
    """Notes that what is in a folder came from below an address."""
    _ADDRESSES[str(folder)] = address


def forget() -> None:
    """Forgets all that was noted: the copies are gone."""
    _ADDRESSES.clear()


def folder_of(copy: Path) -> Path | None:
    """The folder that was noted for a copy; None if it is none."""
    return next((folder for folder in copy.parents if str(folder) in _ADDRESSES), None)


def with_addresses(text: str) -> str:
    """A text with addresses in the place of the paths of copies."""
    for folder, address in _ADDRESSES.items():
        text = text.replace(f"{folder}/", f"{address}/")
    return text


def describe_place(place: str | Path) -> str:
    """A path or address as it may be printed: of a copy the address, without any password."""
    text = with_addresses(str(place))
    return _SECRETS.sub("", text).rstrip("?&") if "://" in text else text
