"""`atomic_directory`: a checkpoint appears whole or not at all."""

from __future__ import annotations

import errno
import hashlib
import io
import os
from pathlib import Path

import pytest

from rllib_compat import convert
from rllib_compat.errors import CheckpointError, FileSystemError, TargetExistsError
from rllib_compat.formats import atomic, atomic_directory, atomic_file
from tests import disk, kills
from tests.trees import digest_tree


def names(folder):
    return sorted(p.name for p in folder.iterdir())


def write_and_fail(target, error, **options):
    with atomic_directory(target, **options) as folder:
        (folder / "half").write_text("1")
        raise error()


def test_the_target_appears_only_after_the_block_has_ended(tmp_path):
    target = tmp_path / "new"
    with atomic_directory(target) as folder:
        (folder / "state").write_text("1")
        assert not target.exists()
        assert folder.parent == tmp_path  # a rename across file systems is a copy
    assert (target / "state").read_text() == "1"
    assert names(tmp_path) == ["new"]


def test_the_target_can_be_read_by_others_as_any_new_directory(tmp_path):
    (tmp_path / "plain").mkdir()
    with atomic_directory(tmp_path / "new"):
        pass
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_a_failure_leaves_nothing_behind_not_even_parents(tmp_path, error):
    with pytest.raises(error):
        write_and_fail(tmp_path / "a" / "b" / "new", error)
    assert names(tmp_path) == []


def test_a_failure_keeps_parents_that_somebody_else_uses_by_now(tmp_path):
    def fail():
        (tmp_path / "a" / "other").write_text("theirs")
        return OSError(errno.ENOSPC, "full")

    with pytest.raises(FileSystemError, match="disk is full"):
        write_and_fail(tmp_path / "a" / "b" / "new", fail)
    assert names(tmp_path / "a") == ["other"]


@pytest.mark.parametrize("make", ["directory", "empty", "file", "dangling link"])
def test_what_is_there_already_is_not_touched(tmp_path, make):
    target = tmp_path / "new"
    if make == "file":
        target.write_text("old")
    elif make == "dangling link":
        target.symlink_to(tmp_path / "nowhere")
    else:
        target.mkdir()
        if make == "directory":
            (target / "old").write_text("old")
    with pytest.raises(TargetExistsError, match="overwrite=True"), atomic_directory(target):
        raise AssertionError("must not be reached")
    assert os.path.lexists(target)
    assert names(tmp_path) == ["new"]


@pytest.mark.parametrize("make", ["directory", "file", "link"])
def test_overwrite_replaces_the_whole_of_the_old_one(tmp_path, make):
    target, elsewhere = tmp_path / "new", tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "keep").write_text("keep")
    if make == "directory":
        target.mkdir()
        (target / "old").write_text("old")
    elif make == "file":
        target.write_text("old")
    else:
        target.symlink_to(elsewhere)
    with atomic_directory(target, overwrite=True) as folder:
        (folder / "state").write_text("1")
    assert digest_tree(target).keys() == {"state"}
    assert names(elsewhere) == ["keep"]  # a link is replaced, not followed
    assert names(tmp_path) == ["elsewhere", "new"]


def test_overwrite_keeps_the_old_one_when_the_new_one_fails(tmp_path):
    target = tmp_path / "new"
    target.mkdir()
    (target / "old").write_text("old")
    before = digest_tree(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        write_and_fail(target, KeyboardInterrupt, overwrite=True)
    assert digest_tree(tmp_path) == before


def test_without_exchange_overwrite_brings_the_old_one_back_when_the_rename_fails(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(atomic, "_exchange", lambda one, other: False)
    target = tmp_path / "new"
    target.mkdir()
    (target / "old").write_text("old")
    before = digest_tree(tmp_path)
    rename = Path.rename

    def fail_for_the_new_one(self, to):
        if self.suffix == ".partial":
            raise OSError("disk gone")
        return rename(self, to)

    monkeypatch.setattr(Path, "rename", fail_for_the_new_one)
    with (
        pytest.raises(OSError, match="disk gone"),
        atomic_directory(target, overwrite=True) as folder,
    ):
        (folder / "state").write_text("1")
    assert digest_tree(tmp_path) == before


def test_two_writers_of_one_target_do_not_mix(tmp_path):
    target = tmp_path / "new"
    slow = atomic_directory(target)
    (slow.__enter__() / "slow").write_text("1")
    with atomic_directory(target) as fast:
        (fast / "fast").write_text("1")
    with pytest.raises(TargetExistsError):
        slow.__exit__(None, None, None)
    assert names(target) == ["fast"]
    assert names(tmp_path) == ["new"]


@pytest.fixture(params=[True, False], ids=["exchange", "two steps"])
def replacing(request, monkeypatch):
    """Replaces a target in one step, and as where the system can't."""
    if not request.param:
        monkeypatch.setattr(atomic, "_exchange", lambda one, other: False)


def test_overwrite_leaves_nothing_beside_the_target(tmp_path, replacing):
    target = tmp_path / "new"
    for text in ("1", "2"):
        with atomic_directory(target, overwrite=True) as folder:
            (folder / "state").write_text(text)
    assert (target / "state").read_text() == "2"
    assert names(tmp_path) == ["new"]


def test_what_a_killed_run_left_is_removed_by_the_next_one(tmp_path):
    left = tmp_path / ".new.0123abcd.partial"
    left.mkdir()
    (left / "half").write_text("1")
    (tmp_path / ".new.mine").write_text("not ours")
    (tmp_path / ".newer.0123abcd.partial").mkdir()  # of another target
    with atomic_directory(tmp_path / "new"):
        pass
    assert names(tmp_path) == [".new.mine", ".newer.0123abcd.partial", "new"]


def test_what_another_run_is_writing_is_left_alone(tmp_path):
    slow = atomic_directory(tmp_path / "new", overwrite=True)
    (slow.__enter__() / "slow").write_text("1")
    with atomic_directory(tmp_path / "new") as fast:
        (fast / "fast").write_text("1")
    slow.__exit__(None, None, None)
    assert names(tmp_path / "new") == ["slow"]
    assert names(tmp_path) == ["new"]


def test_a_target_that_stepped_aside_for_a_killed_run_comes_back(tmp_path):
    (tmp_path / ".new.0123abcd.old").mkdir()
    (tmp_path / ".new.0123abcd.old" / "precious").write_text("1")
    with pytest.raises(TargetExistsError), atomic_directory(tmp_path / "new"):
        raise AssertionError("must not be reached")
    assert names(tmp_path) == ["new"]
    assert names(tmp_path / "new") == ["precious"]


@pytest.mark.parametrize(
    ("number", "told"),
    [
        (errno.ENOSPC, "full"),
        (errno.EROFS, "read-only"),
        (errno.EACCES, "Permission"),
        (errno.EDQUOT, "quota"),
        (errno.EIO, "reports an error"),
    ],
)
def test_what_the_disk_refuses_is_told_and_leaves_everything_as_it_was(tmp_path, number, told):
    target = tmp_path / "new"
    target.mkdir()
    (target / "old").write_text("old")
    before = digest_tree(tmp_path)

    def fail():
        return OSError(number, os.strerror(number), "somewhere")

    with pytest.raises(FileSystemError, match=told) as caught:
        write_and_fail(target, fail, overwrite=True)
    assert caught.value.where == "somewhere"
    assert caught.value.exit_code == 2
    assert digest_tree(tmp_path) == before


def test_a_name_that_is_too_long_is_told_before_anything_is_written(tmp_path):
    with (
        pytest.raises(FileSystemError, match="too long"),
        atomic_directory(tmp_path / ("n" * 256)),
    ):
        raise AssertionError("must not be reached")
    assert names(tmp_path) == []


def test_a_target_below_a_file_is_told(tmp_path):
    (tmp_path / "file").write_text("mine")
    with (
        pytest.raises(FileSystemError, match="in the way"),
        atomic_directory(tmp_path / "file" / "new"),
    ):
        raise AssertionError("must not be reached")


def test_long_names_with_the_same_beginning_are_told_apart(tmp_path):
    (tmp_path / ("n" * 240 + "1")).mkdir()
    one, other = tmp_path / ("n" * 240 + "1"), tmp_path / ("n" * 240 + "2")
    with atomic_directory(other):
        left = next(p for p in tmp_path.iterdir() if p.suffix == ".partial")
    left.with_suffix(".old").mkdir()
    with atomic_directory(one, overwrite=True):
        pass
    assert left.with_suffix(".old").exists()


@pytest.mark.parametrize("place", [".", "inside", "inside/deep", ".."])
def test_the_source_is_never_the_target(tmp_path, place):
    source = tmp_path / "outer" / "old"
    source.mkdir(parents=True)
    (source / "state").write_text("1")
    before = digest_tree(tmp_path)
    with (
        pytest.raises(CheckpointError, match="outside of the source"),
        atomic_directory(source / place, overwrite=True, source=source),
    ):
        raise AssertionError("must not be reached")
    assert digest_tree(tmp_path) == before


def test_a_link_to_the_source_is_the_source(tmp_path):
    source = tmp_path / "old"
    source.mkdir()
    (tmp_path / "link").symlink_to(source)
    with (
        pytest.raises(CheckpointError),
        atomic_directory(tmp_path / "link" / "new", source=source),
    ):
        raise AssertionError("must not be reached")


def test_a_target_beside_the_source_is_fine(tmp_path):
    (tmp_path / "old").mkdir()
    with atomic_directory(tmp_path / "old-new", source=tmp_path / "old"):
        pass
    assert names(tmp_path) == ["old", "old-new"]


def test_a_name_as_long_as_the_file_system_takes_works(tmp_path):
    with atomic_directory(tmp_path / ("n" * 255)):
        pass


def test_a_relative_target_is_beside_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with atomic_directory("new"):
        pass
    assert names(tmp_path) == ["new"]


def test_digests_tell_every_change_of_a_tree(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a").write_bytes(b"1")
    (tmp_path / "link").symlink_to("sub")
    before = digest_tree(tmp_path)
    assert before.keys() == {"sub/a", "link"}
    (tmp_path / "sub" / "a").write_bytes(b"2")
    assert digest_tree(tmp_path) != before
    (tmp_path / "sub" / "a").write_bytes(b"1")
    assert digest_tree(tmp_path) == before
    (tmp_path / "new").write_bytes(b"")
    assert digest_tree(tmp_path) != before


def test_the_digest_of_a_single_file_is_under_its_name(tmp_path):
    (tmp_path / "checkpoint-2").write_bytes(b"")
    empty = hashlib.sha256().hexdigest()
    assert digest_tree(tmp_path / "checkpoint-2") == {"checkpoint-2": empty}


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_killed_conversion_never_leaves_half_a_target_and_never_loses_the_old_one(
    tmp_path, overwrite
):
    found = kills.run(10, tmp_path, overwrite=overwrite)
    assert (found.half, found.lost, found.left) == (0, 0, 0)
    assert found.killed >= 5


def test_a_disk_that_is_full_at_any_write_is_told_and_leaves_nothing(tmp_path, full_after):
    writes = 0
    while True:
        full_after(writes)
        try:
            convert(kills.OLD.checkpoint, tmp_path / "new", to="msgpack", inputs=5)
        except FileSystemError as error:
            assert "disk is full" in str(error)  # noqa: PT017
            assert names(tmp_path) == []
            writes += 10
        else:
            break
    assert writes > 10


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_system_that_lets_no_file_grow_is_told_and_leaves_nothing(tmp_path, overwrite):
    found = disk.limited(tmp_path, overwrite=overwrite, steps=8)
    assert found.left == []
    assert found.refused >= 8
    assert found.told == ["A file would become larger than is allowed here."]


@pytest.mark.parametrize("to", ["onnx", "safetensors"])
def test_a_disk_that_refuses_is_told_whoever_writes(to, tmp_path):
    """The libraries of other formats have errors of their own."""
    pytest.importorskip(to)
    found = disk.limited(tmp_path, to, steps=8)
    assert found.left == []
    assert found.refused >= 8
    assert found.told == ["A file would become larger than is allowed here."]


@pytest.mark.skipif(not disk.can_mount(), reason="no file system can be mounted here")
def test_a_real_disk_that_is_too_small_or_read_only_is_told_and_keeps_what_it_had():
    found = disk.in_namespace()
    assert found.left == []
    assert found.refused > 10
    assert found.told == ["The disk is full.", "The disk is read-only."]
    assert found.fitted == 2


@pytest.fixture
def full_after(monkeypatch):
    """Lets Python's files of the package take so many writes, and no more."""
    left = 0

    class Full(io.FileIO):
        def write(self, data):
            nonlocal left
            if left <= 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self.name)
            left -= 1
            return super().write(data[:100])

    def opened(path, mode="r", *args, **kwargs):
        if "w" not in mode:
            return real(path, mode, *args, **kwargs)
        file = io.BufferedWriter(Full(path, "w"), 100)
        return file if "b" in mode else io.TextIOWrapper(file, "utf-8")

    real = io.open
    monkeypatch.setattr(io, "open", opened)
    monkeypatch.setattr("builtins.open", opened)

    def allow(writes):
        nonlocal left
        left = writes

    return allow


def test_every_file_is_on_the_disk_before_the_folder_gets_its_name(tmp_path, monkeypatch):
    synced = []
    sync = os.fsync

    def fsync(descriptor):
        synced.append((os.fstat(descriptor).st_ino, (tmp_path / "new").exists()))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    with atomic_directory(tmp_path / "new") as folder:
        (folder / "a").write_text("x")
        file, inside = (folder / "a").stat().st_ino, folder.stat().st_ino
    assert (file, False) in synced
    assert (inside, False) in synced


def test_a_file_appears_whole_and_keeps_its_permissions(tmp_path):
    target = tmp_path / "train.py"
    target.write_text("old")
    target.chmod(0o640)

    def write_half():
        with atomic_file(target) as file:
            file.write(b"new")
            assert target.read_text() == "old"
            raise ValueError("half")

    with pytest.raises(ValueError, match="half"):
        write_half()
    assert target.read_text() == "old"
    with atomic_file(target) as file:
        file.write(b"new")
    assert target.read_text() == "new"
    assert target.stat().st_mode & 0o777 == 0o640
    assert names(tmp_path) == ["train.py"]


def test_a_file_is_not_replaced_where_that_was_not_asked_for(tmp_path):
    target = tmp_path / "model.py"
    with atomic_file(target, overwrite=False) as file:
        file.write(b"mine")
    with (
        pytest.raises(TargetExistsError),
        atomic_file(target, overwrite=False) as file,
    ):
        file.write(b"another")
    assert target.read_text() == "mine"
    assert names(tmp_path) == ["model.py"]
