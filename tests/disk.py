"""Converts onto disks that are too small or read-only, for real, and looks at what is left.

`python -m tests.disk` does it with everything that `convert` writes; `python -m tests.disk onnx`
with one of them. It mounts a small file system in memory (in a namespace of its own, which needs
Linux and the right to make one) and makes it larger page by page, then file by file, until a
conversion fits; then an older conversion, which is to be replaced, takes the room, and then it is
made read-only. `limited` does the same with the limit that the system sets on the size of files,
which works everywhere.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rllib_compat import convert
from rllib_compat.errors import FileSystemError
from tests.kills import OLD, OTHER
from tests.trees import digest_tree

_PAGE = 4096

#: What `convert` writes; the first with Ray.
TARGETS = ("checkpointable", "msgpack", "onnx", "safetensors")


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


def limited(
    folder: Path, to: str = "msgpack", *, overwrite: bool = False, steps: int = 60
) -> Found:
    """Converts with a limit on the size of files, from nothing to what is needed."""
    found = Found()
    convert(OTHER.checkpoint if overwrite else OLD.checkpoint, folder / "new", to=to, inputs=2)
    convert(OLD.checkpoint, folder / "whole", to=to, inputs=2)
    largest = max(p.stat().st_size for p in (folder / "whole").rglob("*") if p.is_file())
    work = folder / "work"
    work.mkdir()
    if overwrite:
        (folder / "new").rename(work / "new")
    for size in range(0, largest, max(1, largest // steps)):
        with _limit(size):
            attempt(found, work, f"files of {size}", overwrite=overwrite, to=to)
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


def mounted(folder: Path, to: str = "msgpack", step: int = 1) -> Found:
    """Converts onto file systems that are too small; runs in a namespace of its own.

    Args:
        folder: Where they are mounted.
        to: What is written.
        step: By how many pages, or files, each is larger than the one before.
    """
    found, disk = Found(), folder / "disk"
    disk.mkdir()
    for kind, unit in (("size", _PAGE), ("nr_inodes", 1)):
        for number in range(step, 10_000, step):
            _mount(disk, f"{kind}={number * unit}")
            fitted = found.fitted
            attempt(found, disk, f"{kind}={number * unit}", to=to)
            subprocess.run(["umount", disk], check=True)
            if found.fitted > fitted:
                break
    _mount(disk, "size=64m")
    convert(OTHER.checkpoint, disk / "new", to=to, inputs=2)
    used = os.statvfs(disk)
    size = (used.f_blocks - used.f_bfree + 2) * used.f_frsize
    subprocess.run(["mount", "-o", f"remount,size={size}", disk], check=True)
    attempt(found, disk, "no room beside the old one", overwrite=True, to=to)
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    attempt(found, disk, "read-only", overwrite=True, to=to)
    subprocess.run(["umount", disk], check=True)
    return found


def _mount(disk: Path, option: str) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", option, "tmpfs", disk], check=True)


def in_namespace(to: str = "msgpack", step: int = 1) -> Found | None:
    """Runs `mounted` where this process may mount; None where it may not."""
    if not can_mount():
        return None
    command = ["unshare", "-rm", sys.executable, "-m", "tests.disk", "--inside", str(step), to]
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
    targets = [to for to in TARGETS if to in sys.argv] or TARGETS
    with tempfile.TemporaryDirectory() as folder:
        if "--inside" in sys.argv:
            print(json.dumps(asdict(mounted(Path(folder), targets[0], int(sys.argv[2])))))
            return
        for to in targets:
            print(f"{to}, small and read-only disks:", in_namespace(to) or "can't be mounted here")
            for overwrite in (False, True):
                place = Path(folder) / f"{to}{overwrite}"
                place.mkdir()
                found = limited(place, to, overwrite=overwrite)
                print(f"{to}, small files, overwrite={overwrite}:", found)


if __name__ == "__main__":
    main()
