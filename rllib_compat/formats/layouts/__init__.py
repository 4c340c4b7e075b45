"""One module a layout: how a format lies on disk, and how it is read.

To add one: write a module with `name` and `read(path, budget)`, which raises `LayoutMismatch`
where a path is of another layout, and put it into `LAYOUTS`. Only `own_msgpack` has to come before
`v1`, of which it is a special case; no other path fits two.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from rllib_compat.formats.files import disk_errors
from rllib_compat.formats.layouts import exported, foreign_files, own_msgpack, search, v0_1, v1, v2
from rllib_compat.formats.layouts.folder import LayoutMismatch
from rllib_compat.formats.stores import source_path
from rllib_compat.neutral.budget import Budget
from rllib_compat.neutral.check import check
from rllib_compat.neutral.checkpoint import LegacyCheckpoint
from rllib_compat.neutral.errors import CheckpointError, MissingFileError, UnknownLayoutError
from rllib_compat.neutral.report import Finding, Verdict


class Layout(Protocol):
    """A way in which a format lies on disk.

    Attributes:
        name: The format, as RLlib numbers it.
    """

    name: str

    def read(self, path: Path, budget: Budget) -> LegacyCheckpoint:
        """Reads a checkpoint.

        Raises:
            LayoutMismatch: The path is not of this layout.
            CorruptCheckpointError: It is, and damaged.
        """
        ...


LAYOUTS: tuple[Layout, ...] = (v2, own_msgpack, v1, exported, v0_1)


def read(path: str | Path, budget: Budget | None = None) -> LegacyCheckpoint:
    """Reads a checkpoint of any layout: a file, its folder or that of its trial; or at an address.

    Give the same budget to all that a job does.

    Raises:
        UnknownLayoutError: No layout recognises the path; the error says what each missed.
        CorruptCheckpointError: One does, and a file is damaged.
        BudgetExceededError: It expands to more than the budget allows.
        FileSystemError: The file system refuses; the error says what to do.
        CheckpointError: A file can't be opened for any other reason.
    """
    path = source_path(path)
    budget = budget or Budget()
    try:
        with disk_errors(path):
            return check(_read(path, budget), budget)
    except MissingFileError as error:
        if error.rest is not None:
            error.rest = check(error.rest, budget)
        raise
    except OSError as error:
        raise CheckpointError(
            f"The checkpoint cannot be read: {error.strerror or error}.",
            where=str(error.filename or path),
            fix="Check that all its files exist and are readable.",
        ) from error


def _read(path: Path, budget: Budget) -> LegacyCheckpoint:
    path = search.whole_of(path)
    beside = (path.parent / f"{path.name}{ending}" for ending in v0_1.SIDE_ENDINGS)
    if not path.exists() and not any(file.exists() for file in beside):
        found, fix = search.explain_missing(path)
        raise UnknownLayoutError(found, where=str(path), fix=fix)
    if path.is_dir():
        search.require_one_layout(path)
    is_foreign = path.is_file() and path.suffix != exported.ARCHIVE
    by_name = foreign_files.identify_by_name(path) if is_foreign else None
    if is_foreign and (other := by_name or foreign_files.identify_archive(path)):
        raise UnknownLayoutError(other.found, where=str(path), fix=other.fix)
    mismatches = []
    for layout in LAYOUTS:
        try:
            return layout.read(path, budget)
        except LayoutMismatch as mismatch:
            mismatches.append(f"    {layout.name}: {mismatch}")
    if path.is_dir() and (last := search.last_of_trial(path)) is not None:
        return _read(last, budget).with_findings([_last_of_trial(last)])
    if path.is_dir() and (advice := search.suggest(path)):
        raise UnknownLayoutError("This is not a checkpoint.", where=str(path), fix=advice)
    raise UnknownLayoutError(
        "No known checkpoint layout fits:\n" + "\n".join(mismatches),
        where=str(path),
        fix="Pass the checkpoint file, its folder, or the trial's folder above it.",
    )


def _last_of_trial(last: Path) -> Finding:
    return Finding.info(
        "several-checkpoints",
        Verdict.NOTE,
        last.name,
        "the last checkpoint of the trial's folder was taken",
        "give the path of another one to read that",
    )
