"""Converts onto disks that are too small or read-only, for real, and looks at what is left.

`python -m tests.disk` mounts a small file system in memory (in a namespace of its own, which needs
Linux and the right to make one) and makes it larger page by page, then file by file, until a
conversion fits; then it is made read-only. `limited` does the same with the limit that the system
sets on the size of files, which works everywhere.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rllib_compat.convert.pipeline import convert
from rllib_compat.formats.atomic import digest_tree
from rllib_compat.neutral.errors import FileSystemError
from tests.kills import OLD, OTHER

_PAGE = 4096


@dataclass
class Found:
    """What conversions onto bad disks have shown.

    Attributes:
        refused: How many ended with an error that says what the disk refused.
        fitted: How many ended well, with a whole checkpoint.
        left: What was found beside or instead of what should be there, by the size of the disk.
        told: The errors' first lines.
    """

    refused: int = 0
    fitted: int = 0
    left: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)


def attempt(found: Found, folder: Path, what: str, *, overwrite: bool = False, to: str = "msgpack"):
    """Converts into a folder once, and notes what is there afterwards."""
    target = folder / "new"
    before = digest_tree(folder)
    try:
        convert(OLD.checkpoint, target, to=to, inputs=2, overwrite=overwrite)
    except FileSystemError as error:
        found.refused += 1
        if error.found not in found.told:
            found.told.append(error.found)
        if digest_tree(folder) != before or (not overwrite and names(folder)):
            found.left.append(what)
    else:
        found.fitted += 1
        if names(folder) != ["new"]:
            found.left.append(what)


def limited(folder: Path, *, overwrite: bool = False, steps: int = 60) -> Found:
    """Converts with a limit on the size of files, from nothing to what is needed."""
    found = Found()
    convert(
        OTHER.checkpoint if overwrite else OLD.checkpoint, folder / "new", to="msgpack", inputs=2
    )
    convert(OLD.checkpoint, folder / "whole", to="msgpack", inputs=2)
    largest = max(p.stat().st_size for p in (folder / "whole").rglob("*") if p.is_file())
    work = folder / "work"
    work.mkdir()
    if overwrite:
        (folder / "new").rename(work / "new")
    for size in range(0, largest, max(1, largest // steps)):
        with _limit(size):
            attempt(found, work, f"files of {size}", overwrite=overwrite)
    return found


def names(folder: Path) -> list[str]:
    """The names in a folder."""
    return [path.name for path in folder.iterdir()]


@contextmanager
def _limit(size: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def mounted(folder: Path, to: str = "msgpack") -> Found:
    """Converts onto a file system of every size; runs in a namespace of its own."""
    found, disk = Found(), folder / "disk"
    disk.mkdir()
    for kind, unit in (("size", _PAGE), ("nr_inodes", 1)):
        for number in range(1, 10_000):
            _mount(disk, f"{kind}={number * unit}")
            fitted = found.fitted
            attempt(found, disk, f"{kind}={number * unit}", to=to)
            subprocess.run(["umount", disk], check=True)
            if found.fitted > fitted:
                break
    _mount(disk, "size=64m")
    convert(OTHER.checkpoint, disk / "new", to="msgpack", inputs=2)
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    attempt(found, disk, "read-only", overwrite=True, to=to)
    subprocess.run(["umount", disk], check=True)
    return found


def _mount(disk: Path, option: str) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", option, "tmpfs", disk], check=True)


def in_namespace(to: str = "msgpack") -> Found | None:
    """Runs `mounted` where this process may mount; None where it may not."""
    if not can_mount():
        return None
    command = ["unshare", "-rm", sys.executable, "-m", "tests.disk", "--inside", to]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=3000)
    return Found(**json.loads(done.stdout.splitlines()[-1]))


def can_mount() -> bool:
    """Whether a small file system can be mounted in a namespace of its own."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", folder]
        try:
            return subprocess.run(command, capture_output=True, timeout=60).returncode == 0
        except (OSError, subprocess.TimeoutExpired):
            return False


def main() -> None:
    """Prints what was found."""
    to = sys.argv[-1] if sys.argv[-1] in ("msgpack", "checkpointable") else "msgpack"
    with tempfile.TemporaryDirectory() as folder:
        if "--inside" in sys.argv:
            print(json.dumps(asdict(mounted(Path(folder), to))))
            return
        print("small and read-only disks:", in_namespace(to) or "can't be mounted here")
        for overwrite in (False, True):
            place = Path(folder) / str(overwrite)
            place.mkdir()
            print(f"small files, overwrite={overwrite}:", limited(place, overwrite=overwrite))


if __name__ == "__main__":
    main()
