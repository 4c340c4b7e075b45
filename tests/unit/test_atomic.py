"""`atomic_directory`: a checkpoint appears whole or not at all."""

from __future__ import annotations

import hashlib
import os

import pytest

from rllib_compat.formats import atomic
from rllib_compat.formats.atomic import atomic_directory, digest_tree
from rllib_compat.neutral.errors import CheckpointError, TargetExistsError


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
        return OSError("full")

    with pytest.raises(OSError, match="full"):
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
    with pytest.raises(TargetExistsError, match="--overwrite"), atomic_directory(target):
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


def test_overwrite_brings_the_old_one_back_when_the_rename_fails(tmp_path, monkeypatch):
    target = tmp_path / "new"
    target.mkdir()
    (target / "old").write_text("old")
    before = digest_tree(tmp_path)
    rename = atomic.Path.rename

    def fail_for_the_new_one(self, to):
        if self.suffix == ".partial":
            raise OSError("disk gone")
        return rename(self, to)

    monkeypatch.setattr(atomic.Path, "rename", fail_for_the_new_one)
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


@pytest.mark.parametrize("place", [".", "inside", "inside/deep", ".."])
def test_the_source_is_never_the_target(tmp_path, place):
    source = tmp_path / "outer" / "old"
    source.mkdir(parents=True)
    (source / "state").write_text("1")
    before = digest_tree(tmp_path)
    with (
        pytest.raises(CheckpointError, match="apart from the source"),
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
