"""JSON and YAML of strangers, read within a budget; and what the file system refuses."""

from __future__ import annotations

import errno
import io
import json
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rllib_compat.neutral.budget import Budget, budget_error
from rllib_compat.neutral.errors import (
    BudgetExceededError,
    CheckpointError,
    CorruptCheckpointError,
    FileSystemError,
)

#: A JSON file beside a checkpoint is a few kilobytes; params.json of a league is the largest.
_LARGEST_JSON = 16 << 20
#: The largest of RLlib's own examples has six kilobytes. YAML takes a hundred times longer to read.
_LARGEST_YAML = 256 << 10
#: The longest line of a log; histograms and media of thousands of episodes take some MB.
_LONGEST_LINE = 64 << 20
#: What to do with a file that people write themselves, as programs do.
_CORRECT = "Correct what the message names; a file that a program wrote, copy again."
_MOST_MERGED = 100_000
_LONGEST_INTEGER = 1000  # characters
_DEEPEST_YAML = 100


def read_json(path: Path, budget: Budget, where: str) -> Any:
    """Reads a JSON file.

    Raises:
        CorruptCheckpointError: It is damaged, or nested too deeply.
        BudgetExceededError: It is too large.
        CheckpointError: It is no file, or can't be read.
    """
    return parse_json(read_bytes(path, budget, where, _LARGEST_JSON), budget, where)


def parse_json(data: memoryview, budget: Budget, where: str) -> Any:
    """Reads JSON, as `read_json` does, of bytes that were noted as input."""
    if len(data) > _LARGEST_JSON:
        raise _too_large(len(data), where)
    text = _text(data, where)
    # An empty list is two letters, and 64 bytes.
    budget.spend("made", 80 * (text.count("[") + text.count("{")), where)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CorruptCheckpointError(f"Not JSON: {error}", where=where, fix=_CORRECT) from error


def read_lines(path: Path) -> Iterator[tuple[str, bytes]]:
    """The lines of a log that are not empty, each with where it is.

    Raises:
        BudgetExceededError: A line is longer than any honest one.
        FileSystemError: It can't be read.
    """
    with disk_errors(path), open_regular(path) as stream:
        number = 0
        while line := stream.readline(_LONGEST_LINE + 1):
            number += 1
            if len(line) > _LONGEST_LINE:
                raise BudgetExceededError("A line is too long for a log.", where=str(path))
            if line.strip():
                yield f"{path}:{number}", line


def parse_record(line: bytes, where: str) -> dict[str, Any]:
    """A line of a log, which is an object in JSON.

    Raises:
        CorruptCheckpointError: It is something else.
    """
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise CorruptCheckpointError(f"Not JSON: {error}", where=where) from error
    if not isinstance(record, dict):
        raise CorruptCheckpointError("A line is not a JSON object.", where=where)
    return record


def read_yaml(path: Path, budget: Budget, where: str) -> Any:
    """Reads a YAML file: plain data, without any tag that would make an object.

    Raises:
        CorruptCheckpointError: It is damaged, or nested too deeply.
        BudgetExceededError: It is too large, or expands to too much.
        CheckpointError: It is no file, or can't be read.
    """
    import yaml

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(base):  # type: ignore[misc]
        """PyYAML's safe one, with bounds for what a few lines can expand to."""

        merged = 0

        def flatten_mapping(self, node: Any) -> None:
            # Each `<<: [*a, *a]` doubles what it merges.
            super().flatten_mapping(node)
            self.merged += len(node.value)
            if self.merged > _MOST_MERGED:
                raise ValueError("it merges too many keys")

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            # Keys that are numbers can be chosen so that all of them collide.
            budget.spend("collisions", len(node.value) ** 2 // 4, where)
            return super().construct_mapping(node, deep)

        def construct_yaml_int(self, node: Any) -> Any:
            if len(node.value) > _LONGEST_INTEGER:  # Python refuses to print what is longer
                raise ValueError("it has an integer of thousands of digits")
            return super().construct_yaml_int(node)

    Loader.add_constructor("tag:yaml.org,2002:int", Loader.construct_yaml_int)
    text = read_text(path, budget, where, _LARGEST_YAML)
    try:
        # The C library recurses without bounds, and ends the process.
        depth = 0
        for event in yaml.parse(text, base):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > _DEEPEST_YAML:
                raise budget_error("depth", where)
        # A subclass of the safe loader makes plain data only.
        return yaml.load(text, Loader)  # noqa: S506
    except BudgetExceededError:
        raise
    except (yaml.YAMLError, ValueError, TypeError, ArithmeticError, LookupError) as error:
        raise CorruptCheckpointError(f"Not YAML: {error}", where=where, fix=_CORRECT) from error
    except (RecursionError, AttributeError) as error:
        found = f"Not YAML that can be read: {error}"
        raise CorruptCheckpointError(found, where=where, fix=_CORRECT) from error


def read_text(path: Path, budget: Budget, where: str, largest: int) -> str:
    """Reads a text file; a pipe or a device, which may never end, is none.

    Raises:
        CorruptCheckpointError: It is no UTF-8.
        BudgetExceededError: It is too large.
        CheckpointError: It is no file, or can't be read.
    """
    return _text(read_bytes(path, budget, where, largest), where)


def _text(data: memoryview, where: str) -> str:
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError as error:
        fix = "Save the file as UTF-8; one that a program wrote, copy again."
        raise CorruptCheckpointError(f"Not text: {error}", where=where, fix=fix) from error


def _too_large(size: int, where: str) -> BudgetExceededError:
    return BudgetExceededError(f"A file of {size:,} bytes is too large for a config.", where=where)


def read_bytes(path: Path, budget: Budget, where: str, largest: int | None = None) -> memoryview:
    """Reads a file into memory once, so that it does not change after it was checked.

    A file that is mapped and becomes shorter ends the process.

    `largest` is how many bytes a file of its kind has at most.

    Returns:
        Writable memory that nothing else refers to.

    Raises:
        CorruptCheckpointError: It has changed meanwhile.
        BudgetExceededError: It is too large.
        CheckpointError: It is no file, or can't be read.
    """
    try:
        with open_regular(path) as file:
            before = os.fstat(file.fileno())
            if largest is not None and before.st_size > largest:
                raise _too_large(before.st_size, where)
            budget.take_input(before.st_size, where or None)
            data = bytearray(before.st_size + 1)
            size = file.readinto(data)
            after = os.fstat(file.fileno())
    except (FileNotFoundError, IsADirectoryError) as error:
        found = "No such file."
        raise CheckpointError(found, where=where, fix="Check the path.") from error
    except OSError as error:
        raise CheckpointError(
            f"It can't be read: {error.strerror}.",
            where=where,
            fix="Check the path, and that you have the permission to read the file.",
        ) from error
    if (size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        raise CorruptCheckpointError(
            "The file has changed while it was read.",
            where=where,
            fix="Wait until the other program has written it, and run the command again.",
        )
    return memoryview(data)[:size]


def open_regular(path: Path) -> io.BufferedReader:
    """Opens a file to be read; a pipe or a device, which may never end, is none.

    Raises:
        FileNotFoundError: It is not there, or something else is.
        OSError: It can't be opened.
    """
    # Opening a pipe would wait; what is there may have changed since somebody looked.
    file = open(path, "rb", opener=_open_at_once)  # noqa: SIM115 - Path.open has no opener
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise FileNotFoundError(errno.ENOENT, "there is no such file", str(path))
    return file


def _open_at_once(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def list_folders(folder: Path) -> list[Path]:
    """The folders in a folder, without links; none where it can't be read."""
    try:
        return sorted(p for p in folder.iterdir() if p.is_dir() and not p.is_symlink())
    except OSError:
        return []


def walk(
    root: str | Path, *, onerror: Callable[[OSError], object] | None = None
) -> Iterator[tuple[Path, list[str], list[str]]]:
    """The folders from one on, as `os.walk` has them, however deep they are nested.

    Until Python 3.12, that one goes no deeper than Python's limit of recursion.

    `onerror` is called with what the system refuses; by default it is passed over.

    Yields:
        A folder, and the names of the folders and of all else in it. What the caller takes out of
        the former is not visited, nor are links.
    """
    waiting = [iter([Path(root)])]
    while waiting:
        if (place := next(waiting[-1], None)) is None:
            waiting.pop()
            continue
        folders: list[str] = []
        others: list[str] = []
        try:
            with os.scandir(place) as found:
                for entry in found:
                    (folders if entry.is_dir() else others).append(entry.name)
        except OSError as error:
            if onerror is not None:
                onerror(error)
            continue
        yield place, folders, others
        inner = map(place.__truediv__, folders)
        waiting.append(path for path in inner if not path.is_symlink())


_ROOM = "Free some space, or choose another disk."
_RIGHTS = "Choose a place that you may read and write, or change its permissions."

#: What was found, and what to do, by the number that the system gives.
_KNOWN = {
    errno.ENOSPC: ("The disk is full.", _ROOM),
    errno.EDQUOT: ("Your quota of the disk is used up.", _ROOM),
    errno.EFBIG: ("A file would become larger than is allowed here.", _ROOM),
    errno.EROFS: ("The disk is read-only.", "Choose another place."),
    errno.EACCES: ("Permission denied.", _RIGHTS),
    errno.EPERM: ("Permission denied.", _RIGHTS),
    errno.ENAMETOOLONG: ("A name is too long for the file system.", "Choose a shorter path."),
    errno.ENOENT: ("A file or folder is not there, or no longer.", "Check the path; run it again."),
    errno.ENOTDIR: ("A part of the path is a file, not a folder.", "Check the path."),
    errno.EISDIR: ("A folder is in the place of a file.", "Check the path."),
    errno.EEXIST: ("A file is in the way of a folder.", "Check the path."),
    errno.ELOOP: ("It is a link, or links lead in a circle.", "Give the path itself."),
    errno.EIO: ("The disk reports an error.", "Check the disk."),
    errno.ESTALE: ("The network file system has lost the file.", "Run it again."),
    errno.EMFILE: ("Too many files are open.", "Raise the limit (`ulimit -n`)."),
}


@contextmanager
def disk_errors(where: str | Path) -> Iterator[None]:
    """Turns what the file system refuses inside the block into a `FileSystemError`."""
    try:
        yield
    except OSError as error:
        # Errors of libraries have no number; those of connections and terminals are no disk's.
        if not error.errno or isinstance(error, (ConnectionError, InterruptedError)):
            raise
        unknown = f"The system refuses: {error.strerror}.", "Check the path and the disk."
        found, fix = _KNOWN.get(error.errno, unknown)
        place = error.filename if isinstance(error.filename, (str, os.PathLike)) else where
        raise FileSystemError(found, where=str(place), fix=fix) from error
