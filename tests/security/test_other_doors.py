"""Doors beside the checkpoint: recordings, files of configs and code, saved bytes, odd paths."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

from rllib_compat import artifacts, convert
from rllib_compat.adapters import as_parquet
from rllib_compat.artifacts.manifest import Manifest, StoredFile, StoredFolder
from rllib_compat.cli import main
from rllib_compat.conversion import recordings
from rllib_compat.errors import (
    BudgetExceededError,
    CheckpointError,
    CompatError,
    ConfigError,
    CorruptCheckpointError,
)
from rllib_compat.runtime.offline import files
from rllib_compat.trainer.checkpoints import unpack
from rllib_compat.trainer.rollouts import Recorder
from tests.marks import marked
from tests.security import payloads, planted
from tests.security.canary import MODULE, watched
from tests.security.payloads import dumps


@pytest.fixture(autouse=True)
def in_time():
    """A pipe would be waited for without end."""
    old = signal.signal(signal.SIGALRM, lambda *_: pytest.fail("it hangs"))
    signal.alarm(60)
    started = time.process_time()
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, old)
    assert time.process_time() - started < 20


# --- recordings


def header(descr, shape):
    file = io.BytesIO()
    told = {"descr": descr, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, told)
    return file.getvalue()


def npz(path, member, kind=zipfile.ZIP_STORED, name="obs.npy"):
    with zipfile.ZipFile(path, "w", kind) as archive, archive.open(name, "w") as file:
        for part in member:
            file.write(part)


def patched(path, *changes):
    """Changes a byte of each header of the first member."""
    data = bytearray(path.read_bytes())
    central = data.find(b"PK\x01\x02")
    for local, value in changes:
        data[local] = data[central + local + 2] = value
    path.write_bytes(data)


def hostile_recordings(path):
    """Builds one hostile recording after the other."""
    npz(path, [header("<f4", (10**8,)), *[bytes(1 << 20)] * 400], zipfile.ZIP_DEFLATED)
    yield "a bomb"
    npz(path, [header("<f8", (10**13,))])
    yield "more numbers than any memory"
    npz(path, [b"\x93NUMPY\x01\x00" + (9000).to_bytes(2, "little") + b"[" * 9000])
    yield "a header without end"
    npz(path, [header("|O", (1,)), dumps(payloads.Call())])
    yield "an array of objects"
    path.write_bytes(dumps(payloads.Call()))
    yield "a pickle"
    npz(path, [b"x" * 100])
    patched(path, (6, 1))
    yield "encrypted"
    npz(path, [b"x" * 100])
    patched(path, (8, 99))
    yield "packed in a way that nobody knows"
    path.unlink()
    os.mkfifo(path)
    yield "a pipe"


def test_a_recording_is_plain_arrays_or_an_error(tmp_path):
    path = tmp_path / "x.npz"
    for what in hostile_recordings(path):
        with watched(tmp_path / "code", tmp_path / "new") as seen, pytest.raises(CheckpointError):
            print(what, recordings.load(path))
        seen.assert_clean()


def test_a_recording_may_be_packed(tmp_path):
    np.savez_compressed(tmp_path / "x.npz", obs=np.zeros((1000, 84)))
    assert recordings.load(tmp_path / "x.npz")["obs"].shape == (1000, 84)


@pytest.mark.parametrize("line", ["[" * 100_000, '{"type": "SampleBatch", "obs": "AAAA"}', "7"])
def test_a_line_of_recorded_steps_is_a_batch_or_an_error(line):
    with pytest.raises(CorruptCheckpointError):
        files.from_json(line, "x")


def test_parquet_in_place_of_recordings_does_not_reach_ray(tmp_path):
    """Ray unpickles what its cells hold, where `input` named JSON in every old Ray."""
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    (tmp_path / "in").mkdir()
    table = pa.table({"item": pa.array([dumps(payloads.Call())], pa.binary())})
    parquet.write_table(table, tmp_path / "in" / "a.parquet")
    for source in (str(tmp_path), str(tmp_path / "in")):
        for given in (source, [source]):
            with pytest.raises(ConfigError, match="input_read_method"):
                as_parquet(given)
    with pytest.raises(CorruptCheckpointError):
        as_parquet(str(tmp_path / "in" / "a.parquet"))  # as a file, it is a recording


# --- files of configs and code

SOURCES = {
    "no text": b"\xff\xfe = {}",
    "null bytes": b"x = {'a':\x00 1}",
    "brackets": b"x = " + b"[" * 3000,
    "signs": b"x = {'a': " + b"-" * 20_000 + b"1}",
    "blocks": b"".join(b" " * i + b"if 1:\n" for i in range(400)) + b" " * 400 + b"pass\n",
}


@pytest.mark.parametrize("what", [*SOURCES, "a pipe"])
@pytest.mark.parametrize("verb", ["config", "upgrade"])
def test_code_that_is_none_is_an_error(verb, what, tmp_path, run):
    file = tmp_path / "x.py"
    os.mkfifo(file) if what == "a pipe" else file.write_bytes(SOURCES[what])
    code, _, err = run(verb, f"{file}:x" if verb == "config" else file)
    assert (code, "Traceback" in err) == (2, False)


def test_upgrading_a_file_imports_nothing_that_it_names(tmp_path, run):
    file = tmp_path / "x.py"
    file.write_text(
        f"import {MODULE}\nfrom {MODULE} import touch\nfrom ray import {MODULE}\n"
        f"from ray.rllib.agents.{MODULE} import x\nimport gym.{MODULE}\n"
        f"config = {{'callbacks': '{MODULE}.touch', 'env': '{MODULE}:Env'}}\n"
    )
    for target in ("compat", "native"):
        with watched(tmp_path / "code", tmp_path) as seen:
            run("upgrade", file, "--to", target)
        seen.assert_clean()


# --- saved bytes


def zipped(kind, *members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", kind) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return file.getvalue()


@pytest.mark.parametrize(
    "saved",
    [b"", b"junk", zipped(zipfile.ZIP_DEFLATED, ("a", bytes(10_000_000)))],
    ids=["nothing", "junk", "a bomb"],
)
def test_bytes_that_no_trainer_saved_are_an_error(saved, tmp_path):
    with pytest.raises(CorruptCheckpointError, match="save_to_object"):
        unpack(saved, str(tmp_path))
    assert not list(tmp_path.iterdir())


def test_names_in_saved_bytes_lead_nowhere(tmp_path):
    inner = tmp_path / "inner"
    inner.mkdir()
    unpack(zipped(zipfile.ZIP_STORED, ("../out", b"x"), ("/etc/out", b"x")), str(inner))
    assert [p.name for p in tmp_path.iterdir()] == ["inner"]


# --- odd paths


@pytest.mark.parametrize("path", ["/", "", ".", "x" * 5000, "/dev/zero", "/dev/fd/0", "http://x/y"])
def test_a_path_that_is_no_checkpoint_is_an_error(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("rllib_compat.formats.layouts.search.suggest", lambda _: None)
    with pytest.raises(CompatError):
        convert(path, tmp_path / "new", to="msgpack")


# --- other formats


def test_safetensors_has_a_form_for_it_or_an_error_says_so(tmp_path):
    pytest.importorskip("safetensors")
    for number, name in enumerate(("__metadata__", "complex")):
        old = payloads.v0_1(tmp_path / f"old{number}")
        array = np.zeros(2, complex if name == "complex" else np.float32)
        inner = dumps({"state": {"default_policy": {name: array}}})
        old.write_bytes(dumps({"worker": inner}))
        with pytest.raises(CheckpointError, match="safetensors cannot store"):
            convert(old, tmp_path / "new", to="safetensors")
        assert not (tmp_path / "new").exists()


#: What imports most.
OFTEN = {"convert --env", "convert --recursive", "evaluate --config", "train --dry-run", "upgrade"}


@pytest.mark.parametrize("verb", marked(planted.STARTS, OFTEN))
def test_modules_beside_a_checkpoint_pass_for_no_package(verb, tmp_path):
    """A flag that names code made everything that lay there a module for Ray and gymnasium."""
    here = planted.plant(tmp_path)
    way = list(planted.WAYS)[len(verb) % 2]  # `python -m tests.security.planted` starts both
    _, imported, asked = planted.start(here, verb, way)
    assert not imported
    assert asked == ("own_env:Env" in planted.STARTS[verb] and "--env" in planted.STARTS[verb])


def written(here, verb):
    """A command that writes a file in this folder, and the file."""
    run = here / "run"
    run.mkdir()
    (run / "result.json").write_text('{"training_iteration": 1, "episode_reward_mean": 1.0}\n')
    (run / "params.json").write_text("{}")
    (here / "train.py").write_text("from ray.rllib.agents.ppo import PPOTrainer\n")
    checkpoint = str(payloads.v0_1(here / "old"))
    many = ["convert", str(here / "old"), str(here / "new"), "--recursive", "--to", "msgpack"]
    return {
        "upgrade": (["upgrade", str(here)], here / "train.py"),
        "plot": (["plot", str(run), "--out", str(here / "p.png")], here / "p.png"),
        "convert --recursive": (many, here / "new" / "conversions.jsonl"),
    }[verb], checkpoint


@pytest.mark.parametrize("verb", ["upgrade", "plot", "convert --recursive"])
def test_links_in_a_strangers_folder_lead_no_writer_outside(verb, tmp_path):
    """A file behind a link with a foreseeable name got a stranger's text, and its mode."""
    here, outside = tmp_path / "here", tmp_path / "outside"
    here.mkdir()
    (command, target), _ = written(here, verb)
    text = "from ray.rllib.agents.dqn import DQNTrainer\n"
    outside.write_text(text)
    target.parent.mkdir(exist_ok=True)
    links = [target.with_name(f".{target.name}.{end}") for end in ("rllib-compat", "partial")]
    if verb == "upgrade":
        links.append(here / "linked.py")
    else:
        links.append(target)
    for link in links:
        link.symlink_to(outside)
    with pytest.raises(SystemExit):
        main(command)
    assert outside.read_text() == text
    assert not (outside.stat().st_mode & 0o111)
    if verb == "upgrade":
        assert "ray.rllib.algorithms" in target.read_text() or "rllib_compat" in target.read_text()


# --- what simulators wrote


def simulators(checkpoint, size, archive=False):
    """A stranger's checkpoint with one file of a simulator, which is to be written."""
    stored = StoredFile("a", size, "0" * 64, 0.0)
    folder = StoredFolder(1, False, 0, "node", "/tmp", files=[stored], archive=archive)
    place = checkpoint / "artifacts"
    (place / "files" / "runner-1").mkdir(parents=True)
    Manifest(0.0, 1, [folder]).write(place)
    return place / "files" / "runner-1"


@pytest.mark.parametrize("archive", [False, True])
@pytest.mark.parametrize("what", ["a pipe", "a link", "a device"])
def test_simulators_files_that_are_none_are_not_opened(what, archive, tmp_path, capsys):
    folder = simulators(tmp_path / "old", 10, archive)
    file = folder / "env-0.zip" if archive else folder / "env-0" / "a"
    file.parent.mkdir(exist_ok=True)
    if what == "a pipe":
        os.mkfifo(file)
    else:
        file.symlink_to("/etc/passwd" if what == "a link" else "/dev/zero")
    assert artifacts.verify(tmp_path / "old")
    with pytest.raises(CorruptCheckpointError):
        artifacts.extract(tmp_path / "old", tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("archive", [False, True])
def test_simulators_files_stand_for_no_more_than_what_they_take(archive, tmp_path):
    """A megabyte became a gigabyte; a file with holes took for ever."""
    size = 1 << 30
    folder = simulators(tmp_path / "old", size, archive)
    if archive:
        parts = [bytes(1 << 20)] * (size >> 20)
        npz(folder / "env-0.zip", parts, zipfile.ZIP_DEFLATED, name="a")
    else:
        (folder / "env-0").mkdir()
        with (folder / "env-0" / "a").open("wb") as file:
            file.truncate(size)
    for act in (artifacts.verify, lambda old: artifacts.extract(old, tmp_path / "new")):
        with pytest.raises(BudgetExceededError, match="unpacked"):
            act(tmp_path / "old")
    assert not (tmp_path / "new").exists()


def test_rows_of_odd_types_are_a_damaged_manifest(tmp_path):
    simulators(tmp_path / "old", 10)
    path = tmp_path / "old" / "artifacts" / "manifest.json"
    sound = json.loads(path.read_text())
    tried = 0
    for row in (sound, sound["folders"][0], sound["folders"][0]["files"][0]):
        for key, value in list(row.items()):
            for odd in (None, [], {}, [{}], [[]], "x", -1, 1.5, 10**400, True):
                row[key] = odd
                path.write_text(json.dumps(sound))
                with contextlib.suppress(CompatError):
                    str(artifacts.read_manifest(tmp_path / "old").complaints)
                    artifacts.verify(tmp_path / "old")
                tried += 1
            row[key] = value
    assert tried > 150


# --- paths that files name


@pytest.mark.parametrize("named", ["../other", "/etc", "a/../../other", "a\0b", "link", ""])
def test_a_saved_path_leads_nowhere_else(named, tmp_path):
    pytest.importorskip("ray")
    from rllib_compat.tune.trainables import Trainable

    restored = []

    class Old(Trainable):
        def _restore(self, path):
            restored.append(Path(path))

    folder = tmp_path / "checkpoint"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path)
    (folder / ".saved_path").write_text(named)
    with contextlib.suppress(CheckpointError):
        Old.load_checkpoint(Old.__new__(Old), str(folder))
    assert not restored or restored == [folder]


def test_a_shelf_replaces_links(tmp_path):
    outside = tmp_path / "outside"
    outside.write_text("precious")
    (tmp_path / "in").mkdir()
    for suffix in ("", ".db", ".dat", ".dir", ".bak", ".pag"):
        (tmp_path / "in" / f"shelf{suffix}").symlink_to(outside)
    with Recorder(tmp_path / "in" / "shelf", shelf=True):
        pass
    assert outside.read_text() == "precious"
