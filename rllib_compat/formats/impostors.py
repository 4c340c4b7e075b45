"""What lies where a checkpoint's file should be: pointers, web pages, archives, nothing.

Checkpoints come by `git clone`, browsers and buckets, which leave something else in the place of a
file that they did not bring. It is told by its first bytes, and nothing of it is read further.
"""

from __future__ import annotations

import re
from pathlib import Path

from rllib_compat.neutral.frozen import frozen

_HEAD = 1024


@frozen
class Impostor:
    """Something else in the place of a file.

    Attributes:
        found: What it is, as a sentence.
        fix: How to get the file itself.
    """

    found: str
    fix: str


_LFS_SIZE = re.compile(rb"^size (\d{1,18})$", re.MULTILINE)
_ANNEX = re.compile(rb"\A(\.\./)*(\.git|git)?/?annex/objects/")
_PAGE = re.compile(rb"\A\s*(<!--.{0,400}?-->\s*)?<(!doctype html|html|head)\b", re.I | re.S)
_TITLE = re.compile(rb"<title[^>]*>\s*([^<]{1,80}?)\s*</title>", re.I)
_XML_ERROR = re.compile(rb"\A\s*<\?xml.{0,300}?<Error>.{0,100}?<Code>(\w{1,60})</Code>", re.S)
_JSON_ERROR = re.compile(rb'\A\s*\{\s*"(message|error)"\s*:\s*"([^"]{1,80})"')

#: The first bytes of an archive, and the command that unpacks it.
_ARCHIVES = (
    (b"PK\x03\x04", "zip", "unzip"),
    (b"\x1f\x8b", "gzip", "tar -xzf"),
    (b"BZh", "bzip2", "tar -xjf"),
    (b"\xfd7zXZ\x00", "xz", "tar -xJf"),
    (b"\x28\xb5\x2f\xfd", "zstd", "tar --zstd -xf"),
    (b"7z\xbc\xaf\x27\x1c", "7z", "7z x"),
    (b"Rar!\x1a\x07", "rar", "unrar x"),
)
_TAR_AT, _TAR = 257, b"ustar"


def look(path: Path) -> Impostor | None:
    """What a file is instead of a checkpoint's; None: it may be one.

    Args:
        path: A file that is there.
    """
    with path.open("rb") as file:
        head = file.read(_HEAD)
    return _empty(head) or _pointer(head, path) or _page(head)


def archive(path: Path) -> Impostor | None:
    """An archive, which may have a whole checkpoint in it; None: it is none.

    It is asked of the path that was given, not of files in a checkpoint: torch's are zip archives.
    """
    with path.open("rb") as file:
        head = file.read(_HEAD)
    known = ((kind, by) for magic, kind, by in _ARCHIVES if head.startswith(magic))
    kind, unpack = next(known, ("", ""))
    if head[_TAR_AT : _TAR_AT + len(_TAR)] == _TAR:
        kind, unpack = "tar", "tar -xf"
    if not kind:
        return None
    if kind == "zip" and b"data.pkl" in head:
        return Impostor(
            "It is a file of torch, which holds weights without config and spaces.",
            "Give the checkpoint's folder, of which it is a part.",
        )
    return Impostor(
        f"It is an archive ({kind}), not a checkpoint.",
        f"Unpack it (`{unpack} {path.name}`), and give the folder that comes out.",
    )


def _empty(head: bytes) -> Impostor | None:
    if head:
        return None
    return Impostor("The file is empty.", "Copy or download it again; the disk may have been full.")


def _pointer(head: bytes, path: Path) -> Impostor | None:
    if head.startswith(b"version https://git-lfs.github.com/spec/"):
        size = _LFS_SIZE.search(head)
        told = f" of {int(size[1]):,} bytes" if size else ""
        return Impostor(
            f"It is a Git-LFS pointer: the file itself{told} was not downloaded.",
            "Run `git lfs install && git lfs pull` in the repository. (Without git: download the "
            f"file `{path.name}` itself, on GitHub with the button `Download raw file`.)",
        )
    if _ANNEX.match(head):
        return Impostor(
            "It is a git-annex pointer: the file itself was not downloaded.",
            f"Run `git annex get {path.name}` in its folder.",
        )
    return None


def _page(head: bytes) -> Impostor | None:
    again = "Download the file itself (on GitHub: `Download raw file`), not the page that shows it."
    if _PAGE.match(head):
        title = _TITLE.search(head)
        told = f", {title[1].decode('utf-8', 'replace')!r}" if title else ""
        return Impostor(f"It is a web page{told}, saved under this name.", again)
    if error := _XML_ERROR.match(head):
        code = error[1].decode()
        return Impostor(f"It is an error message of a storage service ({code}).", again)
    if error := _JSON_ERROR.match(head):
        said = error[2].decode("utf-8", "replace")
        return Impostor(f"It is an error message of a web service ({said!r}).", again)
    return None
