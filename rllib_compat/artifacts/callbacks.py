"""The callbacks class that puts simulators' folders into checkpoints."""

from __future__ import annotations

import hashlib
import logging
import os
import socket
import tempfile
import time
import uuid
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from rllib_compat.artifacts.manifest import (
    FILES,
    FOLDER,
    MANIFEST,
    Manifest,
    StoredFile,
    StoredFolder,
    is_plain,
)
from rllib_compat.artifacts.runners import (
    PIECE,
    ListedFile,
    Listing,
    Runner,
    RunnerError,
    envs_of,
    list_files,
    read_piece,
    runners_of,
    upload,
)
from rllib_compat.artifacts.storage import extract, pack
from rllib_compat.formats.files import disk_errors
from rllib_compat.formats.paths import storage_path
from rllib_compat.neutral.errors import CheckpointError, ConfigError
from rllib_compat.neutral.public import public
from rllib_compat.ray_versions import episodes
from rllib_compat.ray_versions.types import EnvRunner
from rllib_compat.runtime.legacy_callbacks import ConfiguredCallbacks

#: How many numbers of episodes are kept of an environment between two checkpoints.
_EPISODES = 1000


@public("rllib_compat.artifacts")
class SimulatorFolders(ConfiguredCallbacks):
    """Puts the folders that simulators write into each checkpoint of a trainer.

    It goes where callbacks go, alone or in a list: `"callbacks": SimulatorFolders("out_folder")`.
    Whenever the trainer saves (`Trainer.save`, Tune), it asks all env runners, on whichever machine
    they are, and those of evaluation, for the folders of their environments. The files come through
    Ray's object store, piece by piece, into `artifacts/` of the checkpoint, with a manifest that
    names each file, and each that is not there, with the reason. Nothing of that fails the
    checkpoint, but a disk that is full.

    Args:
        folder: Where an environment has its folder: the name of an attribute or of a method
            without arguments, or a function of the environment. None means that there is none yet.
        take_back: What gets the files again after a restore: the name of a method of the
            environment, which is called with a new folder (`pathlib.Path`) on its machine, or a
            function of the environment and that folder. None: nothing does.
        archives: Whether each folder becomes one ZIP archive.
        only_changed: Whether a checkpoint leaves out what the one before it has; its manifest says
            which one holds it. Keep the earlier ones then.
        upload_to: An address of `pyarrow.fs` (`s3://bucket/runs`). Each runner then writes its
            files there by itself, into a folder of this run and iteration, and the checkpoint has
            the manifest alone.
        max_files: How many files of an environment a checkpoint takes.
        max_bytes: How many bytes a checkpoint takes in all; files that do not fit are left out.
        timeout: How many seconds a runner may take to answer. One that samples answers after it.

    Raises:
        ConfigError: `folder` is neither, or archives are to be uploaded.
    """

    def __init__(
        self,
        folder: str | Callable[[Any], Any] = "output_folder",
        *,
        take_back: str | Callable[[Any, Path], Any] | None = None,
        archives: bool = False,
        only_changed: bool = False,
        upload_to: str | None = None,
        max_files: int = 1000,
        max_bytes: int = 2 << 30,
        timeout: float = 120.0,
    ) -> None:
        super().__init__()
        if not callable(folder) and not str(folder).isidentifier():
            raise ConfigError(
                f"{folder!r} is neither a function nor the name of an attribute or method.",
                where="SimulatorFolders(folder=…)",
                fix="pass the name of an attribute or method of the environment, or a function",
            )
        if archives and upload_to:
            raise ConfigError(
                "archives=True and upload_to cannot be combined: uploads are not archives.",
                where="SimulatorFolders(archives=True, upload_to=…)",
                fix="remove one of them",
            )
        self._arguments: dict[str, Any] = {
            "folder": folder,
            "take_back": take_back,
            "archives": archives,
            "only_changed": only_changed,
            "upload_to": upload_to and storage_path(upload_to),
            "max_files": max_files,
            "max_bytes": max_bytes,
            "timeout": timeout,
        }
        self._stored: _Known = {}
        self._run = f"{time.strftime('%Y%m%d-%H%M%S')}-{uuid.uuid4().hex[:8]}"
        self._episodes: dict[int, deque[int]] = defaultdict(lambda: deque(maxlen=_EPISODES))

    def on_episode_start(self, *, episode: Any, env_index: int = 0, **_: object) -> None:
        """Notes the episode for the manifest."""
        self._episodes[env_index].append(int(episode.episode_id))

    def on_checkpoint_saved(self, *, trainer: Any, checkpoint_dir: str) -> None:
        """Collects what belongs to a checkpoint that was just written."""
        algorithm = getattr(trainer, "algorithm", trainer)
        runners = runners_of(algorithm)
        folder = Path(checkpoint_dir) / FOLDER
        known = self._stored if self._arguments["only_changed"] else {}
        limits = dict(self._arguments)
        if limits["upload_to"]:
            limits["upload_to"] = f"{limits['upload_to'].rstrip('/')}/{self._run}"
        collection = _Collection(folder, limits, int(algorithm.iteration), known)
        with disk_errors(folder):
            manifest = collection.collect(runners)
            folder.mkdir(parents=True, exist_ok=True)
            manifest.write(folder)
        self._stored = collection.stored

    def on_checkpoint_restored(self, *, trainer: object, checkpoint_dir: str) -> None:
        """Hands environments their files, if they take them back."""
        take, timeout = self._arguments["take_back"], self._arguments["timeout"]
        if take is not None:
            algorithm = getattr(trainer, "algorithm", trainer)
            store = self._arguments["upload_to"]
            restore_folders(algorithm, checkpoint_dir, take, timeout=timeout, store=store)

    def listings(self, envs: list[Any]) -> list[Listing]:
        """What there is to collect of a runner's environments; on the runner."""
        found = []
        for index, env in enumerate(envs):
            listing = Listing(index, node=socket.gethostname())
            listing.episodes = list(self._episodes[index])
            del self._episodes[index]
            found.append(listing)
            try:
                folder = self._folder_of(env)
                if folder is None:
                    continue
                listing.folder = os.path.abspath(os.fspath(folder))  # noqa: PTH100 - of a PathLike
                list_files(listing, listing.folder, most=self._arguments["max_files"])
            except Exception as error:  # the environment's own code: it does not fail a checkpoint
                listing.problem = f"asking for its folder failed: {error!r}"
        return found

    def _folder_of(self, env: object) -> Any:
        declared = self._arguments["folder"]
        if callable(declared):
            return declared(env)
        found = getattr(env, declared)
        return found() if callable(found) else found


#: What a checkpoint has of files, by place, folder and path: its size and time, and where it is.
_Known = dict[tuple[str, str, str], tuple[int, int, StoredFile]]


class _GoneError(Exception):
    """A file can't be read any more."""


class _Collection:
    """What becomes the artifacts of one checkpoint.

    Attributes:
        stored: What this one has, or says where it is.
    """

    def __init__(
        self, folder: Path, limits: dict[str, Any], iteration: int = 0, known: _Known | None = None
    ) -> None:
        self._folder, self._limits, self._known = folder, limits, known or {}
        self._manifest = Manifest(time.time(), iteration)
        self._bytes = 0
        self.stored: _Known = {}

    def collect(self, runners: list[Runner]) -> Manifest:
        """Collects what runners have, one piece at a time: Ray's store stays small."""
        until = time.monotonic() + self._limits["timeout"]
        answers = [(runner, runner.ask(_listings)) for runner in runners]
        for runner, answer in answers:
            try:
                for listing in answer(max(0.0, until - time.monotonic())):
                    self._store(runner, listing)
            except RunnerError as error:
                self._problem(runner, f"it does not answer: {error}")
        return self._manifest

    def _problem(self, runner: Runner, why: str) -> None:
        self._manifest.problems.append({"runner": str(runner), "why": why})

    def _store(self, runner: Runner, listing: Listing) -> None:
        if listing.problem is not None:
            self._problem(runner, f"environment {listing.env}: {listing.problem}")
        if listing.folder is None:
            return
        left_out = [{"path": path, "why": why} for path, why in listing.left_out]
        stored = StoredFolder(
            *(runner.index, runner.evaluation, listing.env, listing.node, listing.folder),
            episodes=listing.episodes,
            left_out=left_out,
        )
        if base := self._limits.get("upload_to"):
            stored.uri = f"{base}/iteration-{self._manifest.iteration:06d}/{stored.place}"
        self._manifest.folders.append(stored)
        for number, file in enumerate(listing.files):
            try:
                if self._has_earlier(stored, file):
                    continue
                why = self._refusal(file) or self._fetch(runner, stored, file)
            except RunnerError:
                rest = ["/".join(f.parts) for f in listing.files[number:]]
                left_out += [{"path": path, "why": "its runner is gone"} for path in rest]
                raise
            if why is not None:
                left_out.append({"path": "/".join(file.parts), "why": why})
        target = self._folder / FILES / stored.place
        if self._limits.get("archives") and target.is_dir():
            pack(target)
            stored.archive = True

    def _has_earlier(self, stored: StoredFolder, file: ListedFile) -> bool:
        """Whether an earlier checkpoint has a file as it is; it is then named in the manifest."""
        key = (stored.place, stored.folder, "/".join(file.parts))
        *at, found = self._known.get(key, (None, None, None))
        if found is None or at != [file.size, file.mtime_ns]:
            return False
        stored.files.append(found)
        self.stored[key] = self._known[key]
        return True

    def _refusal(self, file: ListedFile) -> str | None:
        if not is_plain(file.parts):
            return "its path leads out of the folder"
        if self._bytes + file.size > self._limits["max_bytes"]:
            return f"its {file.size:,} bytes are more than the limit leaves"
        return None

    def _fetch(self, runner: Runner, stored: StoredFolder, file: ListedFile) -> str | None:
        """Fetches a file, or lets it be uploaded, and notes it; returns why not, if not."""
        get = self._download if stored.uri is None else self._upload
        try:
            digest, size, changed = get(runner, stored, file)
        except _GoneError as error:
            return str(error)
        self._bytes += size
        path, seconds = "/".join(file.parts), file.mtime_ns / 1e9
        found = StoredFile(path, size, digest, seconds, changed)
        stored.files.append(found)
        if not changed:
            later = replace(found, iteration=self._manifest.iteration)
            self.stored[stored.place, stored.folder, path] = file.size, file.mtime_ns, later
        return None

    def _upload(
        self, runner: Runner, stored: StoredFolder, file: ListedFile
    ) -> tuple[str, int, bool]:
        """Lets the runner write a file to the store; its digest, size, and whether it changed."""
        names = "/".join(quote(part) for part in file.parts)
        where: dict[str, Any] = {"folder": stored.folder, "parts": file.parts, "size": file.size}
        send = partial(upload, **where, uri=f"{stored.uri}/{names}", piece=PIECE)
        found = runner.ask(send)(self._limits["timeout"])
        if isinstance(found, str):
            raise _GoneError(found)
        digest, *now = found
        return digest, file.size, now != [file.size, file.mtime_ns]

    def _download(
        self, runner: Runner, stored: StoredFolder, file: ListedFile
    ) -> tuple[str, int, bool]:
        """Fetches a file into the checkpoint; its digest, size, and whether it changed."""
        target = self._folder / FILES / stored.place / Path(*file.parts)
        target.parent.mkdir(parents=True, exist_ok=True)
        digest, size, changed = hashlib.sha256(), 0, False
        try:
            with target.open("wb") as out:
                for piece, now in self._pieces(runner, stored.folder, file):
                    out.write(piece)
                    digest.update(piece)
                    size += len(piece)
                    changed = changed or now != (file.size, file.mtime_ns)
            if size < file.size:
                raise _GoneError("it became smaller while it was read")
        except BaseException:
            target.unlink()
            raise
        return digest.hexdigest(), size, changed

    def _pieces(
        self, runner: Runner, folder: str, file: ListedFile
    ) -> Iterator[tuple[bytes, tuple[int, int]]]:
        start = 0
        while True:
            size = min(PIECE, file.size - start)
            read = partial(_piece, folder=folder, parts=file.parts, start=start, size=size)
            found = runner.ask(read)(self._limits["timeout"])
            if isinstance(found, str):
                raise _GoneError(found)
            piece, *now = found
            yield piece, tuple(now)
            start += len(piece)
            if start >= file.size or not piece:
                return


def _listings(env_runner: EnvRunner) -> list[Listing]:
    """What a runner has; called there."""
    held = (getattr(c, "legacy", ()) for c in episodes.callbacks_of(env_runner))
    mine = next(c for objects in held for c in objects if isinstance(c, SimulatorFolders))
    return mine.listings(envs_of(env_runner))


def _piece(env_runner: EnvRunner, **where: Any) -> Any:
    """A piece of a file, or why it can't be read; called on the runner."""
    del env_runner
    try:
        return read_piece(**where)
    except OSError as error:
        return f"it can't be read any more: {error.strerror or error}"


logger = logging.getLogger(__name__)


def restore_folders(
    algorithm: object,
    checkpoint: str,
    take: str | Callable[[Any, Path], Any],
    *,
    timeout: float,
    store: str | None = None,
) -> None:
    """Hands each environment a new folder with the files that a checkpoint has of it.

    An environment is who has the same index on the runner of the same number. What can't be handed
    over is logged as a warning: a restore does not fail of it.

    `take` is the environment's method that gets the folder, or a function of both. A manifest may
    name files below `store`; no other address is asked.
    """
    if not (Path(checkpoint) / FOLDER / MANIFEST).is_file():
        return
    with tempfile.TemporaryDirectory() as folder:
        files = Path(folder) / "files"
        try:
            manifest = extract(checkpoint, files, remote=store or False)
        except CheckpointError as error:
            logger.warning("No environment's folder was restored: %s", error)
            return
        runners = {str(runner): runner for runner in runners_of(algorithm)}
        for stored in manifest.folders:
            runner = runners.get(stored.place.split("/")[0])
            try:
                if runner is None:
                    raise RunnerError("there is no such runner now")
                _send(partial(_asked, runner, timeout), stored.env, files / stored.place, take)
            except RunnerError as error:
                logger.warning("the folder of %s was not restored: %s", stored.place, error)


def _asked(runner: Any, timeout: float, function: Callable[..., Any], **arguments: Any) -> Any:
    found = runner.ask(partial(function, **arguments))(timeout)
    if isinstance(found, _Refusal):
        raise RunnerError(found)
    return found


class _Refusal(str):
    """Why a runner could not do what it was asked for."""

    __slots__ = ()


def _send(ask: Callable[..., Any], env: int, files: Path, take: object) -> None:
    """Sends a folder's files piece by piece, then lets the environment take them."""
    target = ask(_begin)
    for path in sorted(p for p in files.rglob("*") if p.is_file()):
        with path.open("rb") as file:
            name, piece = path.relative_to(files).as_posix(), file.read(PIECE)
            ask(_add, target=target, name=name, piece=piece)
            while piece := file.read(PIECE):
                ask(_add, target=target, name=name, piece=piece)
    ask(_hand_over, env=env, target=target, take=take)


# These are called on the runner.


def _begin(env_runner: EnvRunner) -> str:
    del env_runner
    return tempfile.mkdtemp(prefix="simulator-")


def _add(env_runner: EnvRunner, *, target: str, name: str, piece: bytes) -> Any:
    del env_runner
    path = Path(target) / name  # `extract` has made such a path from the manifest before
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            file.write(piece)
    except OSError as error:
        return _Refusal(f"{name} can't be written: {error.strerror or error}")
    return None


def _hand_over(env_runner: EnvRunner, *, env: int, target: str, take: Any) -> Any:
    envs = envs_of(env_runner)
    if env >= len(envs):
        return _Refusal("its runner has fewer environments now")
    try:
        if callable(take):
            take(envs[env], Path(target))
        else:
            getattr(envs[env], take)(Path(target))
    except Exception as error:  # the environment's own code: it does not fail a restore
        return _Refusal(f"taking it failed: {error!r}")
    return None
