"""What a museum file says of the machine that it was made on: folders of one person, addresses."""

from __future__ import annotations

import io
import pickletools
import re
import zipfile
from collections.abc import Iterator

#: Folders that say nothing of a machine: `/old` and those that all of them have.
NEUTRAL_FOLDERS = ("/old/", "/tmp/", "/usr/")
#: The machine itself, and the range that RFC 5737 keeps for documents.
NEUTRAL_ADDRESSES = ("127.0.0.1", "192.0.2.")

# An absolute path; where people work, also one that seems to follow a word: in binary formats the
# length of a text stands before it, and may look like a letter. Random bytes look like short names.
PATH = re.compile(
    r"(?<![\w.*/-])(?=[\w./+-]{12})(?:/[\w.+-]{3,}){2,}(?:/[\w.+-]+)*"
    r"|/(?:home|media|mnt|opt|root|srv|Users|work)(?:/[\w.+-]+)+",
    re.ASCII,
)
ADDRESS = re.compile(r"(?<![\w.=])\d{1,3}(?:\.\d{1,3}){3}(?![\w.])", re.ASCII)
HEXADECIMAL = re.compile(r"(?:[0-9a-f]{2}){20,}")
#: How pickles start: with their protocol, or (0 and 1) with what they hold.
PICKLES = (b"\x80", b"(", b"]", b"}")


def traces(data: bytes) -> set[str]:
    """The paths and addresses in a file that are not neutral."""
    found = set()
    for text in texts(data):
        found |= {p for p in PATH.findall(text) if not p.startswith(NEUTRAL_FOLDERS)}
        found |= {a for a in ADDRESS.findall(text) if not a.startswith(NEUTRAL_ADDRESSES)}
    return found


def texts(data: bytes) -> Iterator[str]:
    """All texts of a file, also of what is zipped, pickled or written in hexadecimal inside."""
    if data.startswith(b"PK\3\4"):
        with zipfile.ZipFile(io.BytesIO(data)) as packed:
            for name in packed.namelist():
                yield name
                yield from texts(packed.read(name))
    elif data.startswith(PICKLES):
        yield from _of_pickles(data)
    else:
        text = data.decode("latin-1")
        yield text
        for found in HEXADECIMAL.findall(text):
            yield from texts(bytes.fromhex(found))


def _of_pickles(data: bytes) -> Iterator[str]:
    """The texts of pickles, one after the other, and of what follows them."""
    stream = io.BytesIO(data)
    while data.startswith(PICKLES, start := stream.tell()):
        try:
            for _, held, _ in pickletools.genops(stream):
                if isinstance(held, str):
                    yield from texts(held.encode("utf-8", "surrogatepass"))
                elif isinstance(held, (bytes, bytearray)):
                    yield from texts(bytes(held))
        except ValueError:  # not a pickle, or not a whole one
            stream.seek(start)
            break
    yield data[stream.tell() :].decode("latin-1")
