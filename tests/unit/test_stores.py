"""Checkpoints at addresses: read, written and refused at every place that takes one."""

import contextlib
import itertools
import json
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import fsspec
import pytest

import rllib_compat as compat
from rllib_compat import artifacts
from rllib_compat.conversion import archive_log, find_jobs, workers
from rllib_compat.conversion.archive_log import Outcome
from rllib_compat.errors import (
    CompatError,
    CorruptCheckpointError,
    FileSystemError,
    TargetExistsError,
)
from rllib_compat.formats import MARK, Store, remove_copy, source_path
from rllib_compat.formats.layouts.search import find_in_store
from rllib_compat.formats.manifest import write_manifest
from rllib_compat.formats.stores import target_directory
from rllib_compat.trials import find_trials
from tests.legacy.cases import find

pytestmark = pytest.mark.skipif(not hasattr(fsspec, "filesystem"), reason="needs fsspec")
CASE = next(c for c in find(ray="0.8.5") if c.variant == "worker1")
TRIAL = "memory://bucket/PPO/trial_1"


@pytest.fixture
def store():
    """A store in memory that has a checkpoint of version 0.1 in the folder of its trial."""
    memory = fsspec.filesystem("memory")
    folder = CASE.checkpoint if CASE.checkpoint.is_dir() else CASE.checkpoint.parent
    memory.put(str(folder), "/bucket/PPO/trial_1/checkpoint_2", recursive=True)
    for params in folder.parent.glob("params.*"):
        memory.put(str(params), f"/bucket/PPO/trial_1/{params.name}")
    memory.pipe(
        "/bucket/PPO/trial_1/result.json",
        b'{"training_iteration": 1, "episode_reward_mean": 2.0, "timesteps_total": 10}\n',
    )
    yield memory
    memory.rm("/bucket", recursive=True)


def _file(memory):
    (name,) = [n for n in memory.find("/bucket/PPO") if n.rsplit("/", 1)[-1] == "checkpoint-2"]
    return f"memory:/{name}"


def test_an_address_is_read_as_the_path_is(store, tmp_path):
    here = compat.inspect(CASE.checkpoint)
    for address in (f"{TRIAL}/checkpoint_2", TRIAL, _file(store)):
        there = compat.inspect(address)
        assert there.to_dict()["policies"] == here.to_dict()["policies"]
        assert there.checkpoint.config == here.checkpoint.config
    store.get("/bucket/PPO/trial_1", str(tmp_path / "trial"), recursive=True)
    assert [f.name for f in find_trials(TRIAL)] == ["result.json"]


@pytest.mark.parametrize("beside", [["logs"], ["logs", "others"], ["trial_9"]])
def test_params_in_a_folder_beside_are_taken_as_those_of_a_path_are(beside, store, tmp_path):
    """They were not found in a store, and the checkpoint had no config there."""
    given = json.dumps({"num_workers": 7})
    for name in beside:
        store.pipe(f"/bucket/apart/{name}/params.json", given.encode())
    store.pipe("/bucket/apart/trial_9/checkpoint_1/checkpoint-1", b"another")
    checkpoint = "apart/saved/checkpoint_2"
    folder = CASE.checkpoint if CASE.checkpoint.is_dir() else CASE.checkpoint.parent
    store.put(str(folder), f"/bucket/{checkpoint}", recursive=True)
    store.get("/bucket/apart", str(tmp_path / "apart"), recursive=True)
    for name in (checkpoint, f"{checkpoint}/checkpoint-2"):
        there, here = (compat.inspect(f"{root}/{name}") for root in ("memory://bucket", tmp_path))
        assert there.checkpoint.config == here.checkpoint.config
        assert ("num_workers" in here.checkpoint.config) == (beside == ["logs"])


def test_what_lies_beside_a_file_is_copied_with_it_and_no_other_checkpoint(store):
    case = next(c for c in find(ray="0.5.3", algorithm="A2C") if c.variant == "small")
    folder = case.checkpoint.parent
    store.put(str(folder), "/bucket/old", recursive=True)
    (name,) = [f.name for f in folder.iterdir() if f.suffix == ".extra_data"]
    store.pipe(f"/bucket/old/{name.replace('-2', '-20')}", b"another")
    address = f"memory://bucket/old/{name}"
    assert (
        compat.inspect(address).to_dict()["counters"]
        == (compat.inspect(folder / name).to_dict()["counters"])
    )
    assert not [path for path in source_path(address).parent.iterdir() if "-20" in path.name]


def test_what_is_converted_to_an_address_is_what_is_converted_to_a_path(store, tmp_path):
    done = compat.convert(f"{TRIAL}/checkpoint_2", "memory://bucket/new", to="msgpack")
    compat.convert(CASE.checkpoint, tmp_path / "new", to="msgpack")
    assert done.target == "memory://bucket/new"
    there = {name: store.cat(name) for name in store.find("/bucket/new")}
    here = {
        path.name: path.read_bytes() for path in (tmp_path / "new").rglob("*") if path.is_file()
    }
    assert {name.rsplit("/", 1)[-1] for name in there} == here.keys()
    assert compat.verify(f"{TRIAL}/checkpoint_2", "memory://bucket/new").equal


def test_what_is_there_is_replaced_only_when_asked_and_if_it_is_ours(store):
    compat.convert(TRIAL, "memory://bucket/new", to="msgpack")
    with pytest.raises(TargetExistsError, match="memory://bucket/new"):
        compat.convert(TRIAL, "memory://bucket/new", to="msgpack")
    compat.convert(TRIAL, "memory://bucket/new", to="msgpack", overwrite=True)
    store.pipe("/bucket/new/notes.txt", b"mine")
    with pytest.raises(TargetExistsError, match="notes"):
        compat.convert(TRIAL, "memory://bucket/new", to="msgpack", overwrite=True)
    assert store.cat("/bucket/new/notes.txt") == b"mine"


def test_what_is_half_written_is_refused_and_may_be_written_again(store):
    compat.convert(TRIAL, "memory://bucket/new", to="msgpack")
    store.pipe(f"/bucket/new/{MARK}", json.dumps({"host": "node-7", "process": 12}).encode())
    with pytest.raises(CorruptCheckpointError, match="is incomplete by process 12 of 'node-7'"):
        compat.inspect("memory://bucket/new")
    compat.convert(TRIAL, "memory://bucket/new", to="msgpack")
    assert not [name for name in store.find("/bucket/new") if name.endswith(MARK)]
    assert compat.verify(TRIAL, "memory://bucket/new").equal


def test_a_run_that_is_cut_off_leaves_a_mark_and_no_manifest(store, monkeypatch):
    write = Store.write

    def write_and_fail(self, name, parts):
        write(self, name, parts)
        raise KeyboardInterrupt

    monkeypatch.setattr(Store, "write", write_and_fail)
    with pytest.raises(KeyboardInterrupt):
        compat.convert(TRIAL, "memory://bucket/new", to="msgpack")
    names = [name.rsplit("/", 1)[-1] for name in store.find("/bucket/new")]
    assert names == [MARK]


class _Limited:
    """A store in memory whose writes fail from one on, that one with an empty file."""

    def __init__(self, patch, memory, writes):
        self.left = writes
        for name in ("open", "makedirs", "mkdir", "rm", "rm_file", "rmdir", "delete"):
            patch.setattr(type(memory), name, self._limit(name, getattr(type(memory), name)))

    def _limit(self, name, method):
        def call(memory, path, *arguments, **options):
            mode = options.get("mode", arguments[0] if arguments else "rb")
            if name != "open" or "w" in mode:
                self.left -= 1
                if self.left == -1 and name == "open":
                    memory.pipe(path, b"")
                if self.left < 0:
                    raise OSError("out of order")
            return method(memory, path, *arguments, **options)

        return call


def _write_folder(files):
    with target_directory("memory://bucket/new", overwrite=True) as folder:
        for name, data in files.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(data)


def _write_whole(data):
    """Writes a folder as a conversion does, with a manifest."""
    with target_directory("memory://bucket/new", overwrite=True) as folder:
        (folder / "a").mkdir()
        for name in ("algorithm_state.pkl", "a/weights"):
            (folder / name).write_bytes(data)
        write_manifest(folder)


def _read_folder():
    copy = source_path("memory://bucket/new")
    files = {p.relative_to(copy).as_posix(): p.read_bytes() for p in copy.rglob("*") if p.is_file()}
    remove_copy(copy)
    return files


def test_a_store_that_fails_at_any_write_has_the_old_folder_or_the_new_one(store, monkeypatch):
    old = {"algorithm_state.pkl": b"old", "rllib_compat_manifest.json": b"old", "a/weights": b"old"}
    new = {"algorithm_state.pkl": b"new", "rllib_compat_manifest.json": b"new", "b/weights": b"new"}
    seen = []
    monkeypatch.setattr(os, "fsync", lambda _: None)
    for writes in itertools.count():
        _write_folder(old)
        with monkeypatch.context() as patch:
            limited = _Limited(patch, store, writes)
            with contextlib.suppress(FileSystemError):
                _write_folder(new)
        found = _read_folder()
        assert found in (old, new), writes
        seen.append(found == old)
        names = [str(name) for name, _ in find_in_store(Store.of("memory://bucket/new"))]
        assert names in ([], ["."]), writes
        with monkeypatch.context() as patch:  # the next run fails, too, a little later
            _Limited(patch, store, writes // 2 + 2)
            with contextlib.suppress(FileSystemError):
                _write_folder(new)
        assert _read_folder() in (old, new), writes
        _write_folder(new)
        assert _read_folder() == new
        left = {name.removeprefix("/bucket/new/") for name in store.find("/bucket/new")}
        assert left == new.keys()
        if limited.left >= 0:
            break
    assert seen == sorted(seen, reverse=True)
    assert seen.count(True) > len(new)
    assert seen.count(False) > len(new)


def _when_read(patch, memory, name, then):
    """Does something once, when a file of a name is opened to be read."""
    open_file, waiting = type(memory).open, [then]

    def open_then(self, path, mode="rb", **options):
        if mode == "rb" and path.endswith(name) and waiting:
            waiting.pop()()
        return open_file(self, path, mode, **options)

    patch.setattr(type(memory), "open", open_then)


@pytest.mark.parametrize("name", ["a/weights", "algorithm_state.pkl"])
def test_a_reader_gets_the_old_folder_or_the_new_one_or_an_error(store, monkeypatch, name):
    _write_whole(b"old")
    with monkeypatch.context() as patch:
        _when_read(patch, store, f"new/{name}", lambda: _write_whole(b"newer"))
        with pytest.raises(CorruptCheckpointError, match="try again"):
            _read_folder()
    assert set(_read_folder().values()) > {b"newer"}
    store.pipe("/bucket/new/a/weights", b"edited on purpose")
    assert b"edited on purpose" in _read_folder().values()


def test_of_two_that_replace_a_folder_the_one_that_came_first_ends(store, monkeypatch):
    _write_whole(b"old")
    with monkeypatch.context() as patch:
        staged = "new/rllib_compat_replacement/algorithm_state.pkl"
        _when_read(patch, store, staged, lambda: _write_whole(b"newer"))
        with pytest.raises(TargetExistsError, match="Another run"):
            _write_whole(b"new")
    assert set(_read_folder().values()) > {b"newer"}
    assert not [name for name in store.find("/bucket/new") if name.endswith(MARK)]


@pytest.mark.parametrize(
    "spoil", [lambda data: data[:-1], lambda data: data + b"x", bytes.swapcase]
)
def test_what_a_store_gives_back_otherwise_is_no_conversion(store, monkeypatch, spoil):
    open_file = type(store).open

    def open_spoiled(self, path, mode="rb", **options):
        if mode == "rb" and path.endswith("rllib_compat_manifest.json"):
            self.pipe(path, spoil(self.cat(path)))
        return open_file(self, path, mode, **options)

    with monkeypatch.context() as patch:
        patch.setattr(type(store), "open", open_spoiled)
        with pytest.raises(CorruptCheckpointError, match="other bytes than were written"):
            compat.convert(TRIAL, "memory://bucket/new", to="msgpack")
    with pytest.raises(CorruptCheckpointError, match="is incomplete"):
        compat.inspect("memory://bucket/new")
    compat.convert(TRIAL, "memory://bucket/new", to="msgpack")
    assert compat.verify(TRIAL, "memory://bucket/new").equal


def test_errors_name_the_address_and_no_secret(store):
    with pytest.raises(CompatError) as error:
        compat.inspect("memory://bucket/nothing")
    assert "memory://bucket/nothing" in str(error.value)
    assert "rllib_compat_copies" not in str(error.value)
    with pytest.raises(CompatError) as error:
        compat.inspect("s3://me:secret@bucket/x?endpoint_override=127.0.0.1:9&access_key=hidden")
    assert "secret" not in str(error.value)
    assert "hidden" not in str(error.value)


@pytest.mark.parametrize("name", ["../out", "a/../../out", "a\0b"])
def test_no_name_leads_out_of_the_copy(store, name):
    store.store[f"/bucket/evil/{name}"] = store.store["/bucket/PPO/trial_1/result.json"]
    with pytest.raises(CompatError):
        source_path("memory://bucket/evil")


def test_what_is_nested_deeper_than_any_checkpoint_is_an_error_of_ours(store):
    store.pipe(f"/bucket/deep/{('a' * 200 + '/') * 30}checkpoint-1", b"x")
    with pytest.raises(CompatError):
        source_path("memory://bucket/deep")


def test_every_verb_takes_an_address(store, run, tmp_path, monkeypatch):
    def run_here(work, jobs, died, **_):  # another process has another store in its memory
        return map(work, jobs)

    monkeypatch.setattr(workers, "run_in_processes", run_here)
    for arguments in (
        ["inspect", TRIAL],
        ["inspect", "--globals", TRIAL],
        ["convert", TRIAL, "memory://bucket/new", "--to", "msgpack"],
        ["verify", TRIAL, "memory://bucket/new"],
        ["plot", TRIAL, "--json"],
        ["plot", f"{TRIAL}/checkpoint_2", "--json"],
        ["plot", f"{TRIAL}/result.json", "--json"],
        ["plot", _file(store), "--json"],
        ["convert", "--recursive", "memory://bucket/PPO", "memory://bucket/all", "--to", "msgpack"],
        ["report", "memory://bucket/all", "--out", str(tmp_path / "report.html")],
    ):
        code, out, err = run(*arguments)
        assert code == 0, (arguments, err)
        assert "rllib_compat_copies" not in out + err
    observation = [0.1, -0.2, 0.3, -0.4]
    here, *there = (
        compat.load_policy(place).compute_single_action(observation, explore=False)
        for place in (CASE.checkpoint, TRIAL, "memory://bucket/new")
    )
    assert [action.actions for action in there] == [here.actions] * 2
    store.pipe("/bucket/alone/checkpoint-1", b"x")
    with pytest.raises(CompatError, match=r"There is no result\.json"):
        find_trials("memory://bucket/alone")
    with pytest.raises(CompatError, match="memory://"):
        artifacts.read_manifest(TRIAL)


def test_copies_are_removed(store):
    copy = source_path(TRIAL)
    assert copy.is_dir()
    remove_copy(copy)
    assert not copy.exists()


def test_checkpoints_below_an_address_are_those_below_the_folder(store, tmp_path):
    tree = next(c for c in find(ray="2.10.0") if (c.checkpoint / "algorithm_state.pkl").exists())
    store.put(str(tree.checkpoint), "/bucket/PPO/trial_2/checkpoint_000003", recursive=True)
    store.get("/bucket/PPO", str(tmp_path / "here"), recursive=True)
    there = find_jobs("memory://bucket/PPO", "memory://bucket/new")
    here = find_jobs(tmp_path / "here", tmp_path / "new")
    assert [job.name for job in there] == [job.name for job in here] != []
    targets = [job.new.relative_to(tmp_path / "new").as_posix() for job in here]
    assert [job.new for job in there] == [f"memory://bucket/new/{name}" for name in targets]


LOG = "memory://bucket/new/conversions.jsonl"
RUNNING = "/bucket/new/conversions.running"


def test_of_runs_that_start_at_once_one_goes_on(store, monkeypatch):
    monkeypatch.setattr(archive_log, "_SETTLE", 0.2)
    read, first, decided = Store.read, threading.Barrier(3), threading.Barrier(3)
    seen, reading = threading.local(), threading.Lock()

    def read_at_once(self, name, **options):
        with reading:  # all who read a file of fsspec's memory share its position
            found = read(self, name, **options)
        if name == archive_log._RUNNING and not hasattr(seen, "it"):
            seen.it = True
            first.wait(10)
        return found

    def start(number):
        try:
            with archive_log.open_log(LOG) as (_, write):
                decided.wait(10)
                write(Outcome("old", "new", "converted", name=str(number)))
        except TargetExistsError:
            decided.wait(10)
            return False
        return True

    monkeypatch.setattr(Store, "read", read_at_once)
    with ThreadPoolExecutor(3) as pool:
        went_on = list(pool.map(start, range(3)))
    assert sum(went_on) == 1
    (outcome,) = archive_log.read_log("memory://bucket/new")
    assert went_on[int(outcome.name)]
    assert not store.exists(RUNNING)


def test_a_run_without_rows_is_alive_and_notices_one_that_takes_over(store, monkeypatch):
    for name, seconds in (("_SETTLE", 0.0), ("_INTERVAL", 0.05), ("_DEAD", 0.7)):
        monkeypatch.setattr(archive_log, name, seconds)
    with archive_log.open_log(LOG):
        time.sleep(0.9)
        with pytest.raises(TargetExistsError, match="Another run"), archive_log.open_log(LOG):
            pass
    monkeypatch.setattr(archive_log, "_DEAD", 60.0)
    with archive_log.open_log(LOG) as (_, write):
        store.pipe(RUNNING, f"{time.time()} another".encode())
        time.sleep(0.3)
        with pytest.raises(TargetExistsError, match="Another run"):
            write(Outcome("old", "new", "converted", name="mine"))
    assert store.cat(RUNNING).endswith(b" another")
    store.rm(RUNNING)
    assert [o.name for o in archive_log.read_log("memory://bucket/new")] == ["mine"]


@pytest.mark.parametrize(
    ("address", "package"), [("gs://bucket/run", "gcsfs"), ("abfs://bucket/run", "adlfs")]
)
def test_a_store_whose_package_is_missing_names_it(address, package, monkeypatch, run):
    """Google's, too: pyarrow opens it, but lists no folder that has no object of its own."""
    monkeypatch.setitem(sys.modules, package, None)
    err = run("inspect", address)[2]
    assert package in err
    assert "Install that package with pip." in err


def test_a_folder_is_listed_without_all_that_is_below_it(store, monkeypatch):
    def find(*_, **__):
        raise AssertionError("some stores list every file below a folder for it")

    monkeypatch.setattr(type(store), "find", find)
    names = [info.base_name for info in Store.of("memory://bucket/PPO").entries()]
    assert names == ["trial_1"]
    assert len(find_jobs("memory://bucket/PPO", "memory://bucket/new")) == 1


def test_a_checkpoint_that_another_one_of_its_size_replaced_is_converted_again(store, tmp_path):
    (before,) = find_jobs("memory://bucket/PPO", tmp_path)
    file = _file(store).removeprefix("memory:/")
    store.pipe(file, store.cat(file))
    (after,) = find_jobs("memory://bucket/PPO", tmp_path)
    assert before.version.split(":")[0] == after.version.split(":")[0]
    assert before.version != after.version
