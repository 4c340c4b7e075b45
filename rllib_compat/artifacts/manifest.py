"""The manifest: what a checkpoint holds of simulators' folders."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rllib_compat.formats import files as text_files
from rllib_compat.formats.atomic import atomic_file
from rllib_compat.formats.layouts.search import whole_of
from rllib_compat.formats.stores import source_path
from rllib_compat.neutral.budget import Budget
from rllib_compat.neutral.errors import CheckpointError, CorruptCheckpointError

#: The folder inside the checkpoint; then the manifest in it, and the folder of the files.
FOLDER, MANIFEST, FILES = "artifacts", "manifest.json", "files"
_VERSION = 1


def name_of_runner(index: int, *, evaluation: bool) -> str:
    """What an env runner is called in a manifest, and its folder."""
    return f"{'evaluation-runner' if evaluation else 'runner'}-{index}"


@dataclass
class StoredFile:
    """A file in a checkpoint.

    Attributes:
        path: Its path in the simulator's folder.
        size: In bytes.
        sha256: The digest of what is stored, in hexadecimal digits.
        mtime: When it was last written, in seconds since 1970.
        changed: Whether it was written while it was read: what is stored may be of two times.
        iteration: The training iteration of the earlier checkpoint that holds it; None: this one
            does.
    """

    path: str
    size: int
    sha256: str
    mtime: float
    changed: bool = False
    iteration: int | None = None


@dataclass
class StoredFolder:
    """What was collected of one environment.

    Attributes:
        runner: The index of its env runner; 0 is the local one.
        evaluation: Whether the runner is one for evaluation.
        env: The environment's index on its runner.
        node: The name of the machine.
        folder: The simulator's folder there.
        episodes: The numbers of its episodes since the last checkpoint, the last ones.
        files: The files.
        left_out: What was not stored, as `path` and `why`.
        archive: Whether the files are in one ZIP archive, beside where their folder would be.
        uri: Where the files are, if they are in a store of their own; a stranger's manifest may
            name any address, so it is asked only where the caller says so.
    """

    runner: int
    evaluation: bool
    env: int
    node: str
    folder: str
    episodes: list[int] = field(default_factory=list)
    files: list[StoredFile] = field(default_factory=list)
    left_out: list[dict[str, str]] = field(default_factory=list)
    archive: bool = False
    uri: str | None = None

    @property
    def place(self) -> str:
        """The folder below `artifacts/files`."""
        return f"{name_of_runner(self.runner, evaluation=self.evaluation)}/env-{self.env}"


@dataclass
class Manifest:
    """What a checkpoint holds of simulators' folders.

    Attributes:
        time: When it was collected, in seconds since 1970.
        iteration: The training iteration.
        folders: One an environment that has declared a folder.
        problems: What could not be collected, as `runner` and `why`.
    """

    time: float
    iteration: int
    folders: list[StoredFolder] = field(default_factory=list)
    problems: list[dict[str, str]] = field(default_factory=list)

    def write(self, folder: Path) -> None:
        """Writes it into the folder of the files."""
        text = json.dumps({"version": _VERSION, **asdict(self)}, indent=1)
        with atomic_file(folder / MANIFEST) as file:
            file.write(text.encode("ascii"))

    @property
    def complaints(self) -> list[str]:
        """A sentence for each thing that is not stored, or not surely as it was."""
        sentences = [f"{p['runner']}: {p['why']}" for p in self.problems]
        for folder in self.folders:
            place = folder.place
            sentences += [f"{place}/{o['path']}: left out, {o['why']}" for o in folder.left_out]
            sentences += [
                f"{place}/{f.path}: written while it was read" for f in folder.files if f.changed
            ]
        return sentences


def read_manifest(checkpoint: str | Path) -> Manifest:
    """What a checkpoint holds of simulators' folders.

    Raises:
        CheckpointError: It has no such manifest.
        CorruptCheckpointError: The manifest is damaged, or names a path outside of its folder.
    """
    path = whole_of(source_path(checkpoint)) / FOLDER / MANIFEST
    with text_files.disk_errors(path):
        is_there = path.is_file() and not path.is_symlink()
    if not is_there:
        raise CheckpointError(
            "This checkpoint has no simulators' folders.",
            where=str(path),
            fix='Train with "callbacks": SimulatorFolders(…), and pass one of its checkpoints.',
        )
    found = text_files.read_json(path, Budget(), str(path))
    try:
        if found.pop("version") != _VERSION:
            raise ValueError("its version is unknown")
        folders = [
            StoredFolder(**{**folder, "files": [StoredFile(**f) for f in folder["files"]]})
            for folder in found.pop("folders")
        ]
        manifest = Manifest(**found, folders=folders)
        _check(manifest)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CorruptCheckpointError(
            f"The manifest can't be read: {error}", where=str(path)
        ) from error
    return manifest


def _check(manifest: Manifest) -> None:
    """Raises a ValueError where a value is not what it has to be: the file may be a stranger's."""
    places = [folder.place for folder in manifest.folders]
    if len(set(places)) < len(places):
        raise ValueError("two folders have one place")
    problems, left_out = manifest.problems, [r for f in manifest.folders for r in f.left_out]
    texts: list[Any] = [problem[name] for problem in problems for name in ("runner", "why")]
    texts += [row[name] for row in left_out for name in ("path", "why")]
    for folder in manifest.folders:
        texts += [folder.folder, folder.node, folder.uri or ""]
    numbers: list[Any] = [n for folder in manifest.folders for n in (folder.runner, folder.env)]
    numbers += [manifest.iteration, *(n for folder in manifest.folders for n in folder.episodes)]
    flags: list[Any] = [f for one in manifest.folders for f in (one.evaluation, one.archive)]
    times: list[Any] = [manifest.time]
    for folder in manifest.folders:
        paths: list[Any] = [file.path for file in folder.files]
        wrong = [p for p in paths if not isinstance(p, str) or not is_plain(p.split("/"))]
        if wrong:
            raise ValueError(f"{wrong[0]!r} is no path inside the folder")
        if len(set(paths)) < len(paths):
            raise ValueError("a file is named twice")
        numbers += [file.size for file in folder.files]
        numbers += [file.iteration for file in folder.files if file.iteration is not None]
        texts += [file.sha256 for file in folder.files]
        flags += [file.changed for file in folder.files]
        times += [file.mtime for file in folder.files]
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("a name, reason or digest is no text")
    if not all(type(number) is int and number >= 0 for number in numbers):
        raise ValueError("an index or size is no number")
    if not all(isinstance(flag, bool) for flag in flags):
        raise ValueError("what is said with yes or no is something else")
    if not all(type(time) in (int, float) for time in times):
        raise ValueError("a time is no number")


def is_plain(parts: Sequence[Any]) -> bool:
    """Whether parts of a path stay inside the folder that they are put below."""
    return bool(parts) and all(
        isinstance(part, str)
        and part not in ("", ".", "..")
        and "/" not in part
        and "\0" not in part
        and (os.sep == "/" or os.sep not in part)
        for part in parts
    )
