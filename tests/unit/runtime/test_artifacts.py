"""Simulators' folders: how they are read, stored, checked and unpacked."""

import hashlib
import json
import os
import shutil
import zipfile
from dataclasses import replace

import pytest

from rllib_compat.artifacts import SimulatorFolders, extract, read_manifest, storage, verify
from rllib_compat.artifacts.callbacks import _Collection
from rllib_compat.artifacts.manifest import Manifest, StoredFile, StoredFolder, is_plain
from rllib_compat.artifacts.runners import PIECE, Listing, Runner, list_files, read_piece
from rllib_compat.errors import CheckpointError, CompatError, CorruptCheckpointError

LIMITS = {"max_bytes": 1 << 30, "timeout": 5.0}


class Simulator:
    def __init__(self, folder):
        self.output_folder = folder


class Asked(Runner):
    """A runner in this process, with a folder; `between` happens between listing and reading."""

    def __init__(self, mine, *, between=lambda: None, most=100, **arguments):
        super().__init__(1, None, evaluation=False)
        self._mine = SimulatorFolders(max_files=most, **arguments)
        self._envs, self._between, self._asked = [Simulator(mine)], between, 0

    def ask(self, function):
        if self._asked == 0:
            self._asked = 1
            found = self._mine.listings(self._envs)
            return lambda _: found
        if self._asked == 1:
            self._asked = 2
            self._between()
        return lambda _: function(None)


def collected(tmp_path, runner, **limits):
    checkpoint = tmp_path / "checkpoint"
    manifest = _Collection(checkpoint / "artifacts", {**LIMITS, **limits}).collect([runner])
    (checkpoint / "artifacts").mkdir(parents=True, exist_ok=True)
    manifest.write(checkpoint / "artifacts")
    return checkpoint


@pytest.fixture
def results(tmp_path):
    folder = tmp_path / "simulator"
    (folder / "logs/day 1").mkdir(parents=True)
    (folder / "a.csv").write_text("1,2\n")
    (folder / "logs/day 1/ü.html").write_text("<p>")
    (folder / "empty").touch()
    (folder / "large.sql").write_bytes(os.urandom(2 * PIECE + 1))
    return folder


def left_out(checkpoint):
    (folder,) = read_manifest(checkpoint).folders
    return {o["path"]: o["why"] for o in folder.left_out}


@pytest.mark.parametrize("archives", [False, True])
def test_a_folder_comes_out_as_it_was(tmp_path, results, archives):
    checkpoint = collected(tmp_path, Asked(results), archives=archives)
    stored = {p.name for p in (checkpoint / "artifacts/files/runner-1").iterdir()}
    assert stored == ({"env-0.zip"} if archives else {"env-0"})
    assert verify(checkpoint) == read_manifest(checkpoint).complaints == []
    extract(checkpoint, tmp_path / "out")
    found = tmp_path / "out/runner-1/env-0"
    names = {p.relative_to(results) for p in results.rglob("*") if p.is_file()}
    assert {p.relative_to(found) for p in found.rglob("*") if p.is_file()} == names
    assert all((found / n).read_bytes() == (results / n).read_bytes() for n in names)


def test_no_link_leads_out_of_the_folder(tmp_path, results):
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("private")
    (results / "key").symlink_to(secret / "key")
    (results / "more").symlink_to(secret)
    os.mkfifo(results / "pipe")
    checkpoint = collected(tmp_path, Asked(results))
    assert left_out(checkpoint) == {"key": "a link", "more": "a link", "pipe": "no regular file"}
    assert not [p for p in checkpoint.rglob("*") if p.is_file() and b"private" in p.read_bytes()]


@pytest.mark.parametrize("place", ["logs/day 1", "logs", "logs/day 1/ü.html"])
def test_no_link_that_comes_after_the_listing_is_followed(tmp_path, results, place):
    other = tmp_path / "other"

    def swap():
        shutil.move(results / place, other)
        (results / place).symlink_to(other)

    checkpoint = collected(tmp_path, Asked(results, between=swap))
    assert set(left_out(checkpoint)) == {"logs/day 1/ü.html"}


def test_files_that_change_meanwhile_are_named_and_the_others_are_there(tmp_path, results):
    def change():
        with (results / "a.csv").open("a") as file:
            file.write("3,4\n")
        (results / "large.sql").write_bytes(b"short")
        (results / "logs/day 1/ü.html").unlink()

    checkpoint = collected(tmp_path, Asked(results, between=change))
    (folder,) = read_manifest(checkpoint).folders
    assert {f.path: f.changed for f in folder.files} == {"a.csv": True, "empty": False}
    assert (checkpoint / "artifacts/files/runner-1/env-0/a.csv").read_text() == "1,2\n"
    assert "smaller" in left_out(checkpoint)["large.sql"]
    assert "No such file" in left_out(checkpoint)["logs/day 1/ü.html"]
    assert len(read_manifest(checkpoint).complaints) == 3
    assert verify(checkpoint) == []


def test_limits_leave_out_what_they_say_and_no_more(tmp_path, results):
    checkpoint = collected(tmp_path, Asked(results), max_bytes=10)
    assert list(left_out(checkpoint)) == ["large.sql"]
    shutil.rmtree(checkpoint)
    checkpoint = collected(tmp_path, Asked(results, most=2))
    assert set(left_out(checkpoint)) == {"large.sql", "logs/day 1/ü.html"}


@pytest.mark.parametrize(
    ("declared", "told"),
    [
        ("nothing_there", "AttributeError"),
        (lambda env: 1 / 0, "ZeroDivision"),
        (lambda env: 7, "TypeError"),
    ],
)
def test_an_error_in_what_declares_the_folder_is_told(tmp_path, results, declared, told):
    checkpoint = collected(tmp_path, Asked(results, folder=declared))
    (problem,) = read_manifest(checkpoint).complaints
    assert problem.startswith("runner-1: environment 0")
    assert told in problem


def test_a_folder_that_is_not_there_yet_is_told_and_none_is_nothing(tmp_path, results):
    checkpoint = collected(tmp_path, Asked(results / "later"))
    assert read_manifest(checkpoint).complaints == [
        "runner-1: environment 0: there is no such folder"
    ]
    checkpoint = collected(tmp_path, Asked(None))
    assert read_manifest(checkpoint).folders == read_manifest(checkpoint).complaints == []


@pytest.mark.parametrize(
    "path", ["../x", "/etc/passwd", "a/../../x", "", "a//b", ".", "a\0b", 7, None, ["a"]]
)
def test_a_manifest_can_name_no_path_outside(tmp_path, results, path):
    checkpoint = collected(tmp_path, Asked(results))
    file = checkpoint / "artifacts/manifest.json"
    manifest = json.loads(file.read_text())
    manifest["folders"][0]["files"][0]["path"] = path
    file.write_text(json.dumps(manifest))
    for act in (read_manifest, verify, lambda c: extract(c, tmp_path / "out")):
        with pytest.raises(CorruptCheckpointError):
            act(checkpoint)
    assert not (tmp_path / "out").exists()


def test_what_is_not_as_the_manifest_says_is_told_and_not_unpacked(tmp_path, results):
    checkpoint = collected(tmp_path, Asked(results))
    files = checkpoint / "artifacts/files/runner-1/env-0"
    (files / "a.csv").write_text("9,9\n")
    (files / "large.sql").unlink()
    (files / "empty").write_text("more")
    shutil.rmtree(files / "logs")
    (files / "logs").symlink_to(results / "logs")
    told = dict(line.split(": ", 1) for line in verify(checkpoint))
    assert told.pop("runner-1/env-0/a.csv") == "its contents differ"
    assert told.pop("runner-1/env-0/large.sql") == "it is missing"
    assert told.pop("runner-1/env-0/empty") == "it is larger"
    assert told.pop("runner-1/env-0/logs") == "it is not in the manifest"
    assert set(told) == {"runner-1/env-0/logs/day 1/ü.html"}
    with pytest.raises(CorruptCheckpointError, match="has changed"):
        extract(checkpoint, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_command_lists_checks_and_unpacks(tmp_path, results, run):
    checkpoint = collected(tmp_path, Asked(results))
    out = tmp_path / "out"
    code, shown, _ = run("artifacts", checkpoint, "--verify", "--extract", out, "--json")
    assert code == 0
    shown = json.loads(shown)
    assert len(shown["folders"][0]["files"]) == 4
    assert (out / "runner-1/env-0/a.csv").exists()
    (checkpoint / "artifacts/files/runner-1/env-0/a.csv").write_text("9,9\n")
    code, _, err = run("artifacts", checkpoint, "--verify")
    assert (code, "its contents differ" in err) == (1, True)
    with pytest.raises(CheckpointError, match="no simulators' folders"):
        read_manifest(tmp_path)


def test_a_piece_of_what_is_no_file_is_an_error(tmp_path, results):
    for parts in (("logs",), ("nothing",), ("logs", "..", "a.csv", "x")):
        with pytest.raises(OSError):  # noqa: PT011 - the system's, with its own words
            read_piece(str(results), parts, 0, 10)
    assert not is_plain(("logs", "..", "a.csv"))
    listing = Listing(0)
    list_files(listing, str(results), most=9)
    assert all(is_plain(file.parts) for file in listing.files)


def test_arguments_that_mean_nothing_are_refused():
    with pytest.raises(CompatError, match="neither a function nor the name"):
        SimulatorFolders("no name")


def later(tmp_path, results, number, known, **limits):
    """A checkpoint of a trial that leaves out what an earlier one has, and what is known then."""
    checkpoint = tmp_path / f"checkpoint_{number}"
    collection = _Collection(checkpoint / "artifacts", {**LIMITS, **limits}, number, known)
    manifest = collection.collect([Asked(results)])
    (checkpoint / "artifacts").mkdir(parents=True, exist_ok=True)
    manifest.write(checkpoint / "artifacts")
    return checkpoint, collection.stored


@pytest.mark.parametrize("archives", [False, True])
def test_what_did_not_change_is_stored_once_and_all_of_it_comes_out(tmp_path, results, archives):
    first, known = later(tmp_path, results, 1, {}, archives=archives)
    (results / "a.csv").write_text("1,2\n3,4\n")
    (results / "empty").unlink()
    second, known = later(tmp_path, results, 2, known, archives=archives)
    third, _ = later(tmp_path, results, 3, known, archives=archives)
    (folder,) = read_manifest(third).folders
    assert {f.path: f.iteration for f in folder.files} == {
        "a.csv": 2,
        "large.sql": 1,
        "logs/day 1/ü.html": 1,
    }
    stored = [p.stat().st_size for p in (third / "artifacts").rglob("*") if p.is_file()]
    assert sum(stored) < 5000  # the manifest alone
    assert verify(first) == verify(second) == verify(third) == []
    extract(third, tmp_path / "out")
    found = tmp_path / "out/runner-1/env-0"
    names = {p.relative_to(results) for p in results.rglob("*") if p.is_file()}
    assert {p.relative_to(found) for p in found.rglob("*") if p.is_file()} == names
    assert all((found / n).read_bytes() == (results / n).read_bytes() for n in names)
    shutil.rmtree(second)
    (told,) = verify(third)
    assert told.startswith("runner-1/env-0/a.csv: it is in the checkpoint of iteration 2")
    with pytest.raises(CorruptCheckpointError, match="iteration 2"):
        extract(third, tmp_path / "again")
    assert not (tmp_path / "again").exists()


def test_an_archive_that_is_not_as_the_manifest_says_is_told_and_not_unpacked(tmp_path, results):
    checkpoint = collected(tmp_path, Asked(results), archives=True)
    archive = checkpoint / "artifacts/files/runner-1/env-0.zip"
    whole = archive.read_bytes()
    with zipfile.ZipFile(archive, "a") as opened:
        opened.writestr("../outside", "text")
    assert verify(checkpoint) == ["runner-1/env-0/../outside: it is not in the manifest"]
    extract(checkpoint, tmp_path / "out")
    assert not (tmp_path / "out/runner-1/outside").exists()
    broken = bytearray(whole)
    broken[len(whole) // 2] ^= 1
    for content in (bytes(broken), whole[: len(whole) // 2], b""):
        archive.write_bytes(content)
        assert verify(checkpoint)
        with pytest.raises(CorruptCheckpointError):
            extract(checkpoint, tmp_path / "again")
        assert not (tmp_path / "again").exists()


def test_what_is_uploaded_is_at_the_address_and_asked_for_only_if_one_says_so(tmp_path, results):
    (results / "50% #1?.txt").write_text("a name that an address may not have")
    store = tmp_path / "store"
    first, known = later(tmp_path, results, 1, {}, upload_to=f"file://{store}")
    (results / "a.csv").write_text("changed")
    second, _ = later(tmp_path, results, 2, known, upload_to=f"file://{store}")
    assert not (second / "artifacts/files").exists()
    (folder,) = read_manifest(second).folders
    assert folder.uri == f"file://{store}/iteration-000002/runner-1/env-0"
    assert [p.name for p in store.rglob("*.csv")] == ["a.csv", "a.csv"]
    assert len(verify(second)) == len(folder.files) == 5
    assert verify(first, remote=True) == verify(second, remote=True) == []
    with pytest.raises(CorruptCheckpointError, match="was not looked at"):
        extract(second, tmp_path / "out")
    extract(second, tmp_path / "out", remote=True)
    found = tmp_path / "out/runner-1/env-0"
    names = {p.relative_to(results) for p in results.rglob("*") if p.is_file()}
    assert all((found / n).read_bytes() == (results / n).read_bytes() for n in names)


def test_a_store_that_can_not_be_written_costs_no_checkpoint(tmp_path, results):
    (tmp_path / "store").write_text("no folder")
    checkpoint, known = later(tmp_path, results, 1, {}, upload_to=f"file://{tmp_path}/store")
    assert known == {}
    assert all("can't be written to file://" in why for why in left_out(checkpoint).values())
    assert len(left_out(checkpoint)) == 4


@pytest.mark.parametrize(
    ("uri", "asked"),
    [
        ("s3://mine/runs/1/runner-1/env-0", True),
        ("s3://mine/runs-of-others/env-0", False),
        ("s3://mine/runs/../keys", False),
        ("file:///etc", False),
    ],
)
def test_a_restore_asks_no_store_but_the_trainers_own(uri, asked, tmp_path, monkeypatch):
    """Not for a file that a checkpoint beside it names, either."""
    read = []
    monkeypatch.setattr(storage, "_pieces_of_store", lambda uri, _: read.append(uri) or [b"x"])
    file = StoredFile("a", 1, hashlib.sha256(b"x").hexdigest(), 0.0)
    folder = StoredFolder(1, False, 0, "node", "/tmp", files=[file], uri=uri)
    earlier = replace(folder, files=[replace(file, iteration=1)], uri=None)
    for number, stored in ((1, folder), (2, earlier)):
        place = tmp_path / str(number) / "artifacts"
        place.mkdir(parents=True)
        Manifest(0.0, number, [stored]).write(place)
        assert bool(verify(tmp_path / str(number), remote="s3://mine/runs")) is not asked
    assert bool(read) is asked
