"""The sha256 of what is read; that of a large file is computed while it is worked with."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from threading import Thread

#: Bytes of a file from which on its digest takes longer than a thread of its own costs.
_LARGE = 1 << 28
_BLOCK = 1 << 23


class Digests(Mapping[str, str]):
    """The sha256 of files by name, as hexadecimal digits.

    Computing that of gigabytes takes as long as to copy them. Whoever asks for one waits.
    """

    def __init__(self) -> None:
        self._of: dict[str, str | _Computed] = {}

    def note(self, name: str, data: memoryview) -> None:
        """Notes the digest of a file that was read."""
        is_large = len(data) >= _LARGE
        self._of[name] = _Computed(data) if is_large else hashlib.sha256(data).hexdigest()

    def include(self, folder: str, others: Digests) -> None:
        """Notes those of a folder below."""
        self._of.update({f"{folder}/{name}": digest for name, digest in others._of.items()})

    def __getitem__(self, name: str) -> str:
        digest = self._of[name]
        return digest if isinstance(digest, str) else digest.wait()

    def __iter__(self) -> Iterator[str]:
        return iter(self._of)

    def __len__(self) -> int:
        return len(self._of)

    def __repr__(self) -> str:
        return repr(dict(self))


class _Computed:
    """A digest that a thread computes; one that is not read does not keep the process."""

    def __init__(self, data: memoryview) -> None:
        self._digest = hashlib.sha256()
        self._thread = Thread(target=self._digest.update, args=(data,), daemon=True)
        self._thread.start()

    def wait(self) -> str:
        self._thread.join()
        return self._digest.hexdigest()


def sha256_of(path: Path) -> str:
    """The sha256 of a file, as hexadecimal digits."""
    digest, block = hashlib.sha256(), bytearray(min(_BLOCK, path.stat().st_size + 1))
    with path.open("rb", buffering=0) as file:
        while size := file.readinto(block):
            digest.update(memoryview(block)[:size])
    return digest.hexdigest()
