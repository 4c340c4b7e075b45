"""Checkpoints in a store (`s3://bucket/run`): copied here to be read, and put there once written.

pyarrow opens a store, or fsspec where pyarrow knows none of that name; both find credentials and
endpoints as they always do (environment, profile, `?endpoint_override=…`). Only an address that a
caller gives is opened, never one that a file names, and nothing outside of it but the params of the
trial above it.

A store can't rename. So a folder that is being written has a mark in it, `MARK`, from its first
file to its last, and its manifest comes last of all. Reading it meanwhile, or after a crash, is an
error that names its writer; the next run on it replaces it.

What replaces a folder is written twice: first into a folder below it, `_STAGED`, and once that is
whole, over the old files. Until then the old folder is what is read, and from then on the staged
one is; the next run after a crash puts it in place.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from itertools import count, islice
from pathlib import Path, PurePath, PurePosixPath
from typing import TYPE_CHECKING, Any, NoReturn

from rllib_compat.formats import manifest
from rllib_compat.formats.atomic import atomic_directory, atomic_file, target_exists
from rllib_compat.formats.files import disk_errors
from rllib_compat.formats.paths import (
    LEVELS_UP,
    PARAMS,
    RESULTS,
    is_address,
    local_path,
    split_address,
)
from rllib_compat.neutral import origins
from rllib_compat.neutral.errors import (
    BudgetExceededError,
    CorruptCheckpointError,
    FileSystemError,
    TargetExistsError,
    UnknownLayoutError,
)
from rllib_compat.neutral.extras import import_optional
from rllib_compat.neutral.frozen import frozen

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

    from pyarrow import fs

#: What is in a folder that is being written.
MARK = "rllib_compat_unfinished.json"
#: The folder below it that has what replaces it, until that is in place.
_STAGED = "rllib_compat_replacement"
#: What fsspec opens: pyarrow opens none of these, and of Google's store it lists no folder that has
#: no object of its own. Other protocols of fsspec are wrappers around local files, archives and web
#: pages, or follow redirects.
_FSSPEC = frozenset({"abfs", "abfss", "adl", "az", "gcs", "gs", "memory", "oss", "s3a", "sftp"})
#: What stores of fsspec call the time of a file.
_TIMES = ("mtime", "last_modified", "LastModified", "created")
#: After how many seconds a writer looks whether another one has begun: each look is two requests.
_MARK_CHECK = 1.0
#: How many folders are listed at once.
_AT_ONCE = 16
#: Stores, as pyarrow names them, in which a folder is how names begin.
_WITHOUT_FOLDERS = frozenset({"s3"})
#: One checkpoint has some dozen files; leagues have thousands.
_MOST_FILES = 100_000
#: Bytes of a trial's results that are copied with a checkpoint.
_MOST_RESULTS = 16 << 20
_PART = 8 << 20  # bytes
#: What copies leave of the disk, as a share of it.
_LEFT_FREE = 0.05
_copies = count(1)


@frozen
class Store:
    """A place in a store.

    Attributes:
        files: The store.
        path: The place in it, without a slash at its end.
        shown: The address without credentials, as messages have it.
    """

    files: fs.FileSystem
    path: str
    shown: str

    @classmethod
    def of(cls, address: str) -> Store:
        """Opens the store of an address; nothing is asked of it yet.

        Raises:
            CompatError: The packages for it are not installed.
            FileSystemError: There is no store of that kind, or its address is wrong.
        """
        scheme, rest = split_address(address)
        address, shown = f"{scheme}://{rest}", origins.describe_place(f"{scheme}://{rest}")
        fs = import_optional("pyarrow.fs", extra="cloud", where=shown)
        try:
            if scheme in _FSSPEC:
                # Lists that fsspec keeps do not have what others write meanwhile.
                core = import_optional("fsspec.core", extra="cloud")
                opened, path = core.url_to_fs(address, use_listings_cache=False)
                files = fs.PyFileSystem(_fsspec_handler()(opened))
            else:
                files, path = fs.FileSystem.from_uri(address)
        except (ImportError, OSError, ValueError) as error:
            raise FileSystemError(
                f"The address cannot be opened: {error}.",
                where=shown,
                fix="Install that package with pip."
                if isinstance(error, ImportError)
                else "Pass an address of pyarrow or fsspec, such as s3://bucket/path; their "
                "documentation describes credentials, regions and endpoints.",
            ) from error
        return cls(files, path.rstrip("/"), shown.partition("?")[0].rstrip("/"))

    @property
    def parent(self) -> Store:
        """The folder above."""
        above, shown = self.path.rpartition("/")[0], self.shown.rpartition("/")[0]
        return Store(self.files, above, shown)

    def __truediv__(self, name: str) -> Store:
        return Store(self.files, f"{self.path}/{name}", f"{self.shown}/{name}")

    def is_folder(self) -> bool:
        """Whether the place is a folder; one in a store may be no more than how names begin."""
        return self.kind() == "Directory"

    def kind(self) -> str:
        """What the place is: `Directory`, `File` or `NotFound`."""
        with store_errors(self):
            (info,) = self.files.get_file_info([self.path])
        return str(info.type.name)

    def make_folder(self) -> None:
        """Makes the folder and those above it, where a store has any: a dozen requests in S3."""
        if self.files.type_name not in _WITHOUT_FOLDERS:
            with store_errors(self):
                self.files.create_dir(self.path, recursive=True)

    def entries(self) -> list[fs.FileInfo]:
        """What is in the folder; empty where nothing is."""
        from pyarrow import fs

        with store_errors(self):
            found = self.files.get_file_info(fs.FileSelector(self.path, allow_not_found=True))
        for info in found:
            name = info.path[len(self.path) + 1 :]
            if not info.path.startswith(f"{self.path}/") or _leads_elsewhere(name):
                _refuse_name(self, info.path)
        return sorted(found, key=lambda info: info.path)

    def walk(self) -> Iterator[tuple[Store, list[str], list[fs.FileInfo]]]:
        """The folders from this one on, with the names of those in each, and its files.

        Some are listed before their turn: a store takes its time to answer. What is taken out of
        the names is not walked, and what is to replace a folder is not in them.
        """
        from concurrent.futures import ThreadPoolExecutor  # files of this machine need none

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            waiting = [_list_ahead(pool, [self])]
            while waiting:
                if (found := next(waiting[-1], None)) is None:
                    waiting.pop()
                    continue
                place, listed = found[0], found[1].result()
                folders = [info.base_name for info in listed if info.type.name == "Directory"]
                folders = [name for name in folders if name != _STAGED]
                yield place, folders, [info for info in listed if info.is_file]
                waiting.append(_list_ahead(pool, map(place.__truediv__, folders)))

    def read(self, name: str, *, whole: bool = False) -> bytes | None:
        """A file of the folder, or its first megabytes; None where there is none."""
        with store_errors(self):
            try:
                with self.files.open_input_stream(f"{self.path}/{name}") as file:
                    return bytes(file.read(None if whole else _PART))
            except FileNotFoundError:
                return None

    def write(self, name: str, parts: Iterable[bytes]) -> None:
        """Writes a file into the folder."""
        with store_errors(self), self.files.open_output_stream(f"{self.path}/{name}") as file:
            for part in parts:
                file.write(part)

    def remove(self, name: str) -> None:
        """Removes a file of the folder, if it is there."""
        with store_errors(self), suppress(FileNotFoundError):
            self.files.delete_file(f"{self.path}/{name}")


@cache
def _fsspec_handler() -> type[fs.FSSpecHandler]:
    from pyarrow import fs

    class Handler(fs.FSSpecHandler):  # type: ignore[misc]
        """Lists one folder only, where pyarrow's own may list all below it; and has times."""

        def get_file_info_selector(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
            try:
                found = self.fs.ls(selector.base_dir, detail=True)
            except FileNotFoundError:
                return []
            folder = selector.base_dir.strip("/")
            return [
                self._create_file_info(info["name"].rstrip("/"), info)
                for info in found
                if info["name"].strip("/") != folder
            ]

        @staticmethod
        def _create_file_info(path: str, info: dict[str, Any]) -> fs.FileInfo:
            is_file = info["type"] == "file"
            return fs.FileInfo(
                path,
                fs.FileType.File if is_file else fs.FileType.Directory,
                size=info["size"] if is_file else None,
                mtime=next((info[name] for name in _TIMES if info.get(name)), None),
            )

    return Handler


def _list_ahead(
    pool: ThreadPoolExecutor, places: Iterable[Store]
) -> Iterator[tuple[Store, Future[list[fs.FileInfo]]]]:
    begun: deque[tuple[Store, Future[list[fs.FileInfo]]]] = deque()
    for place in places:
        begun.append((place, pool.submit(place.entries)))
        if len(begun) == _AT_ONCE:
            yield begun.popleft()
    yield from begun


def join_place(place: str | Path, below: str | PurePath) -> str | Path:
    """A path below another one; of an address, an address."""
    if isinstance(place, Path):
        return place / below
    address, mark, query = place.partition("?")
    return f"{address.rstrip('/')}/{below}{mark}{query}"


def source_path(place: str | os.PathLike[str], *, only: Collection[str] = ()) -> Path:
    """A path that can be read: what is at an address is copied to this machine first.

    The copy is removed when this process ends, or by `remove_copy`. With `only`, these files alone
    are copied.

    Raises:
        FileSystemError: The store can't be opened or read.
        CorruptCheckpointError: It is only half written, or holds names that no file can have.
        BudgetExceededError: There is more at the address than fits here.
    """
    return _copy(Store.of(os.fspath(place)), only) if is_address(place) else local_path(place)


def remove_copy(path: Path) -> None:
    """Removes what `source_path` has copied."""
    if (folder := origins.folder_of(path)) is not None:
        shutil.rmtree(folder, ignore_errors=True)


def remove_copies() -> None:
    """Removes all that this process has copied."""
    if _copies_folder.cache_info().currsize:
        origins.forget()
        for folder in Path(_copies_folder().name).iterdir():
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def target_directory(
    place: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    source: str | Path | None = None,
    why_not: Callable[[Path], str | None] = lambda _: None,
) -> Iterator[Path]:
    """Makes a directory here or at an address, as `atomic_directory` does; yields one to fill.

    At an address, it is filled here, and copied when the block has ended well.
    """
    if not is_address(place):
        where = local_path(place)
        with atomic_directory(where, overwrite=overwrite, source=source, why_not=why_not) as folder:
            yield folder
        return
    store = Store.of(os.fspath(place))
    there = {info.base_name for info in store.entries()} - {_STAGED}
    if there and MARK not in there and not overwrite:
        raise target_exists(store.shown)
    if MARK in there and _finish_replacement(store):
        there.remove(MARK)
    is_whole = bool(there) and MARK not in there
    filled = _copy(store) if is_whole else _new_folder(store)
    try:
        with atomic_directory(filled, overwrite=True, why_not=why_not) as folder:
            yield folder
        _remove_staged(store)
        if is_whole:
            _publish(filled, store / _STAGED)
        _publish(filled, store)
        _remove_staged(store)
    finally:
        remove_copy(filled)


def write_file(place: str | Path, parts: Iterable[bytes]) -> None:
    """Writes a file here, where it replaces what is there in one step, or at an address."""
    if isinstance(place, Path):
        with atomic_file(place) as file:
            file.writelines(parts)
        return
    store = Store.of(place)
    store.parent.write(store.path.rpartition("/")[2], parts)


@contextmanager
def store_errors(store: Store) -> Iterator[None]:
    """Turns what a store refuses inside the block into a `FileSystemError`."""
    try:
        yield
    except OSError as error:
        raise FileSystemError(
            f"The store rejected the request: {str(error)[:500]}",
            where=store.shown,
            fix="Check the address, the credentials and the endpoint, as pyarrow needs them.",
        ) from error


@cache
def _copies_folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="rllib_compat_copies_")


def _new_folder(store: Store) -> Path:
    """An empty place for a copy, below folders of the same names as those above it in the store."""
    top = Path(_copies_folder().name, str(next(_copies)))
    names = store.path.strip("/").split("/")[-LEVELS_UP - 1 :]
    for name in names:
        if _leads_elsewhere(name):
            _refuse_name(store, name)
    path = top.joinpath(*names)
    with disk_errors(path):
        path.parent.mkdir(parents=True)
    origins.note(top, store.shown.removesuffix("/" + "/".join(names)))
    return path


def _copy(store: Store, only: Collection[str] = ()) -> Path:
    path = _new_folder(store)
    try:
        left, seen = _free_bytes(path.parent), list[tuple[object, ...]]()
        for folder, info, target in _files(store, path, only):
            left -= info.size
            seen.append((info.path, info.size, info.mtime_ns))
            if len(seen) > _MOST_FILES or left < 0:
                _refuse_size(store, len(seen))
            _copy_file(folder, info, target)
        if not (only or _is_as_written(path)):  # it was replaced meanwhile, or edited long ago
            now = [(i.path, i.size, i.mtime_ns) for _, i, _ in _files(store, path, only)]
            if now != seen:
                _refuse_changing(store.shown, "Its files changed while they were read.")
        if only:  # what is above it may be all there is to copy
            kind = store.kind()
            if kind == "Directory":
                path.mkdir(exist_ok=True)
            elif kind == "File":
                path.touch()
        if not any(target.name.startswith(path.name) for target in path.parent.glob("*")):
            raise UnknownLayoutError(
                "There is no file or folder at this address.",
                where=store.shown,
                fix="Check the address, and that your credentials allow listing it.",
            )
    except BaseException:
        remove_copy(path)
        raise
    return path


def _files(
    store: Store, path: Path, only: Collection[str]
) -> Iterator[tuple[Store, fs.FileInfo, Path]]:
    """What belongs to a place: what is below it or begins with its name, and its trial's params."""
    has_params, is_folder = False, store.is_folder()
    if is_folder:
        whole = _staged(store) or store
        for folder, _, found in whole.walk():
            place = path.joinpath(*PurePosixPath(folder.path[len(whole.path) + 1 :]).parts)
            for info in found:
                if info.base_name == MARK:
                    _refuse_half(folder)
                if not only or info.base_name in only:
                    has_params |= place == path and info.base_name in PARAMS
                    yield folder, info, place / info.base_name
    stem = PurePosixPath(store.path).name.removesuffix(".extra_data")  # of version 0.1
    above = store.parent
    for level in range(LEVELS_UP):
        if not above.path.strip("/"):  # the list of buckets
            return
        for info in above.entries():
            if info.is_file and (
                info.base_name in (only or PARAMS)
                or (not only and info.base_name in RESULTS and info.size <= _MOST_RESULTS)
                or (
                    level == 0
                    and not only
                    and f"{info.base_name}.".startswith((f"{stem}.", ".tune_metadata."))
                )
            ):
                has_params |= info.base_name in PARAMS
                yield above, info, path.parents[level] / info.base_name
        above = above.parent
    if not has_params and not only:
        yield from _params_beside(store, path, 2 if is_folder else 3)


def _params_beside(
    store: Store, path: Path, levels: int
) -> Iterator[tuple[Store, fs.FileInfo, Path]]:
    """Params in folders beside a place, where logs are kept apart (`layouts.configs.find_params`).

    Of a level with several such folders there are two, since none of them is taken then.
    """
    above = store.parent
    for level in range(levels):
        if not above.path.strip("/"):  # the list of buckets
            return
        beside = (above / info.base_name for info in above.entries() if not info.is_file)
        listed = ((folder, folder.entries()) for folder in beside if folder.path != store.path)
        holders = islice(
            (each for each in listed if any(info.base_name in PARAMS for info in each[1])), 2
        )
        match list(holders):
            case [(_, entries)] if any(e.base_name.startswith("checkpoint") for e in entries):
                pass  # another trial's
            case found:
                for folder, entries in found:
                    place = path.parents[level] / PurePosixPath(folder.path).name
                    for info in entries:
                        if info.is_file and info.base_name in PARAMS:
                            yield folder, info, place / info.base_name
        above = above.parent


def _copy_file(folder: Store, info: fs.FileInfo, path: Path) -> None:
    shown = f"{folder.shown}/{info.base_name}"
    with disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as file:
            try:
                with folder.files.open_input_stream(info.path) as source:
                    while part := source.read(_PART):
                        file.write(part)
            except FileNotFoundError:
                _refuse_changing(shown, "It was removed before it could be read.")
            except OSError as error:
                if error.errno and error.filename == str(path):
                    raise
                with store_errors(folder / info.base_name):
                    raise
            if file.tell() != info.size:
                _refuse_changing(
                    shown, f"The file has {info.size:,} bytes, and {file.tell():,} were received."
                )


def _publish(folder: Path, store: Store) -> None:
    """Puts what is in a folder at an address and reads it back; its manifest comes last.

    The mark says who writes. It is read again every `_MARK_CHECK` seconds, so that of two writers
    the one that came first ends, and before the manifest everything is read back, so that no file
    of the other one stays.
    """
    import platform  # reading needs none of them
    import secrets

    by = {"host": platform.node(), "process": os.getpid(), "since": time.time()}
    mark = json.dumps({**by, "run": secrets.token_hex(8)}).encode("ascii")
    store.make_folder()
    store.write(MARK, [mark])
    new = {p.relative_to(folder).as_posix(): p for p in sorted(folder.rglob("*")) if p.is_file()}
    last = new.pop(manifest.NAME, None)
    for below, _, found in store.walk():
        for info in found:
            if info.path[len(store.path) + 1 :] not in {*new, MARK}:
                below.remove(info.base_name)
    try:
        checked = time.monotonic()
        for name, path in new.items():
            if time.monotonic() - checked > _MARK_CHECK:
                _require_mark(store, mark)
                checked = time.monotonic()
            _write_file(path, store / name)
        for name, path in new.items():
            _compare(path, store / name)
    finally:
        _require_mark(store, mark)  # an error may come of what the other one did
    if last is not None:
        _write_file(last, store / manifest.NAME)
        _compare(last, store / manifest.NAME)
    store.remove(MARK)


def _require_mark(store: Store, mark: bytes) -> None:
    """Makes sure that no other run has begun to write into a folder.

    Raises:
        TargetExistsError: One has.
    """
    if store.read(MARK) != mark:
        raise TargetExistsError(
            "Another run has started to write there, and continues.",
            where=store.shown,
            fix="Wait until it has ended. If it has died, write it again.",
        )


def _write_file(path: Path, target: Store) -> None:
    target.parent.make_folder()
    with (
        store_errors(target),
        path.open("rb") as file,
        target.files.open_output_stream(target.path) as stream,
    ):
        shutil.copyfileobj(file, stream, _PART)


def _staged(store: Store) -> Store | None:
    """What replaces the files of a folder, if that has begun; it is whole then."""
    if store.read(MARK) is None or not (staged := store / _STAGED).is_folder():
        return None
    return staged if staged.read(MARK) is None else None


def _finish_replacement(store: Store) -> bool:
    """Puts in place what a killed run was replacing a folder with, if it was."""
    if _staged(store) is None:
        return False
    copy = _copy(store)
    try:
        _publish(copy, store)
    finally:
        remove_copy(copy)
    return True


def _remove_staged(store: Store) -> None:
    if (staged := store / _STAGED).is_folder():
        with store_errors(staged):
            staged.files.delete_dir(staged.path)


def _compare(path: Path, written: Store) -> None:
    """Reads back what was written to a store.

    Raises:
        CorruptCheckpointError: It is not what is in the file here.
    """
    with (
        store_errors(written),
        path.open("rb") as file,
        written.files.open_input_stream(written.path) as source,
    ):
        # A stream may give less than it is asked for, but nothing only at its end.
        same = all(part == file.read(len(part)) for part in iter(lambda: source.read(_PART), b""))
        if same and not file.read(1):
            return
    raise CorruptCheckpointError(
        "The store returned other bytes than were written.",
        where=written.shown,
        fix="Make sure that nothing else writes to it, and run the command again.",
    )


def _leads_elsewhere(name: str) -> bool:
    """Whether it is not the name of one file in a folder."""
    return name in ("", ".", "..") or any(sign in name for sign in ("/", os.sep, "\0"))


def _free_bytes(folder: Path) -> int:
    usage = shutil.disk_usage(folder)
    return usage.free - int(_LEFT_FREE * usage.total)


def _is_as_written(path: Path) -> bool:
    """Whether a copy is what its manifest lists, or has none."""
    try:
        if path.is_dir():
            manifest.require_whole(path)
    except CorruptCheckpointError:
        return False
    return True


def _refuse_changing(shown: str, found: str) -> NoReturn:
    fix = "Somebody is writing it; try again when that has ended."
    raise CorruptCheckpointError(found, where=shown, fix=fix)


def _refuse_half(folder: Store) -> NoReturn:
    try:
        by = json.loads(folder.read(MARK) or b"")
        who = f" by process {by['process']:d} of {by['host']!a:.100}"
    except (ValueError, KeyError, TypeError):
        who = ""
    raise CorruptCheckpointError(
        f"The folder is incomplete{who}.",
        where=folder.shown,
        fix="Wait until the writer has ended, or write it again, which replaces it.",
    )


def _refuse_size(store: Store, files: int) -> NoReturn:
    raise BudgetExceededError(
        "There are more files than a checkpoint has."
        if files > _MOST_FILES
        else "There is more than the disk for temporary files can take.",
        where=store.shown,
        fix="Give the address of one checkpoint, or a larger disk by the variable TMPDIR.",
    )


def _refuse_name(store: Store, name: str) -> NoReturn:
    raise CorruptCheckpointError(
        f"The store has a file {name[:100]!a}, which is not a valid file name.",
        where=store.shown,
        fix="Remove or rename the file in the store.",
    )
