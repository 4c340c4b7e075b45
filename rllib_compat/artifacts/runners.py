"""Env runners, on whichever machine they are: how they are asked, and what they do there.

Only regular files inside a simulator's folder are read. No link is followed, also not one that
takes a folder's place between listing and reading: each part of a path is opened below the one
before.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rllib_compat.artifacts.manifest import name_of_runner
from rllib_compat.formats.files import walk
from rllib_compat.ray_versions import env_runners, environments
from rllib_compat.ray_versions.types import EnvRunner
from rllib_compat.runtime.user_envs import user_env

#: What goes through Ray's object store at once, in bytes.
PIECE = 4 << 20


class RunnerError(Exception):
    """A runner is dead, late, or fails."""


class Runner:
    """One env runner that is asked: through Ray, or the local one at once."""

    def __init__(self, index: int, runner: EnvRunner, *, evaluation: bool) -> None:
        self.index, self.evaluation, self._runner = index, evaluation, runner

    def __str__(self) -> str:
        return name_of_runner(self.index, evaluation=self.evaluation)

    def ask(self, function: Callable[..., Any]) -> Callable[[float], Any]:
        """Lets the runner call a function with itself.

        Returns:
            What waits for the answer, so many seconds. It raises `RunnerError` where none comes.
        """
        import ray

        if not isinstance(self._runner, ray.actor.ActorHandle):
            return lambda _: function(self._runner)
        answer = self._runner.apply.remote(function)

        def wait(seconds: float) -> Any:
            try:
                return ray.get(answer, timeout=seconds)
            except Exception as error:  # whatever Ray raises for it
                said = str(error).strip().splitlines()
                raise RunnerError(f"{type(error).__name__}: {said[-1] if said else ''}") from error

        return wait


def runners_of(algorithm: Any) -> list[Runner]:
    """The runners of an algorithm that have environments, those of evaluation last."""
    groups = (algorithm.env_runner_group, algorithm.eval_env_runner_group)
    return [
        Runner(index, actor, evaluation=bool(number))
        for number, group in enumerate(groups)
        if group is not None
        for index, actor in env_runners.numbered_env_runners(group)
    ]


def envs_of(env_runner: EnvRunner) -> list[Any]:
    """The user's environments of a runner; an external one is served by another."""
    found = environments.environments_of(env_runner)
    own = [user_env(env) if hasattr(env, "unwrapped") else env for env in found]
    return [getattr(env, "external_env", env) for env in own]


@dataclass
class ListedFile:
    """A file as it was when its folder was listed.

    Attributes:
        parts: Its path in the folder, part by part.
        size: In bytes.
        mtime_ns: When it was last written, in nanoseconds since 1970.
    """

    parts: tuple[str, ...]
    size: int
    mtime_ns: int


@dataclass
class Listing:
    """What there is to collect of one environment.

    Attributes:
        env: The environment's index on its runner.
        folder: Its folder's path on that machine; None where it has declared none.
        node: The machine's name.
        episodes: The numbers of the episodes since the last checkpoint.
        files: The files, smallest paths first.
        left_out: Paths that are no regular files, or more than the limit, each with the reason.
        problem: Why there is nothing to collect, if that is so.
    """

    env: int
    folder: str | None = None
    node: str = ""
    episodes: list[int] = field(default_factory=list)
    files: list[ListedFile] = field(default_factory=list)
    left_out: list[tuple[str, str]] = field(default_factory=list)
    problem: str | None = None


def list_files(listing: Listing, folder: str, *, most: int) -> None:
    """Fills a listing with what is in a folder; files after so many are named as left out."""
    if not Path(folder).is_dir():
        listing.problem = "there is no such folder"
        return

    def unreadable(error: OSError) -> None:
        where = os.path.relpath(str(error.filename), folder)
        listing.left_out.append((where, f"it can't be read: {error.strerror}"))

    for place, folders, files in walk(folder, onerror=unreadable):
        folders.sort()
        before = place.relative_to(folder).parts
        for link in [f for f in folders if (place / f).is_symlink()]:
            listing.left_out.append(("/".join((*before, link)), "a link"))
        for file in sorted(files):
            path = "/".join((*before, file))
            try:
                found = (place / file).lstat()
            except OSError as error:
                listing.left_out.append((path, f"it can't be read: {error.strerror}"))
                continue
            if not stat.S_ISREG(found.st_mode):
                kind = "a link" if stat.S_ISLNK(found.st_mode) else "no regular file"
                listing.left_out.append((path, kind))
            elif len(listing.files) >= most:
                listing.left_out.append((path, "more files than the limit"))
            else:
                parts = (*before, file)
                listing.files.append(ListedFile(parts, found.st_size, found.st_mtime_ns))


def read_piece(folder: str, parts: Sequence[str], start: int, size: int) -> tuple[bytes, int, int]:
    """A piece of a file in a folder.

    Returns:
        The bytes; fewer where the file has ended. Then the file's size and time of writing now.

    Raises:
        OSError: It is not there any more, or is no regular file now.
    """
    with open_inside(folder, parts) as file:
        found = os.fstat(file)
        return os.pread(file, size, start), found.st_size, found.st_mtime_ns


@contextmanager
def open_inside(folder: str, parts: Sequence[str]) -> Iterator[int]:
    """Opens a regular file inside a folder, without following any link.

    Raises:
        OSError: A part of the path is not there, a link, or something else than it has to be.
    """
    opened = [os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)]
    inside: Any = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        for part in parts[:-1]:
            opened.append(os.open(part, inside | os.O_DIRECTORY, dir_fd=opened[-1]))
        opened.append(os.open(parts[-1], inside, dir_fd=opened[-1]))
        if not stat.S_ISREG(os.fstat(opened[-1]).st_mode):
            raise OSError(f"{parts[-1]!r} is no regular file")
        yield opened[-1]
    finally:
        for descriptor in reversed(opened):
            os.close(descriptor)


def upload(
    env_runner: EnvRunner, *, folder: str, parts: Sequence[str], size: int, uri: str, piece: int
) -> str | tuple[str, int, int]:
    """Writes a file of a simulator's folder, in pieces, to a store; called on the runner.

    Returns:
        The SHA-256 digest, and the file's size and time of writing afterwards; or why it is not
        there.
    """
    del env_runner
    from pyarrow import fs

    digest, start = hashlib.sha256(), 0
    try:
        store, path = fs.FileSystem.from_uri(uri)
        store.create_dir(path.rpartition("/")[0], recursive=True)
        with open_inside(folder, parts) as file, store.open_output_stream(path) as out:
            while start < size and (found := os.pread(file, min(piece, size - start), start)):
                out.write(found)
                digest.update(found)
                start += len(found)
            after = os.fstat(file)
    except Exception as error:  # each store has errors of its own
        return f"it can't be written to {uri}: {error}"
    if start < size:
        return "it became smaller while it was read"
    return digest.hexdigest(), after.st_size, after.st_mtime_ns
