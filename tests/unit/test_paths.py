"""Every argument for a path takes `~`, a relative path, a `Path` and `file://`, everywhere."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import rllib_compat as compat
from rllib_compat import Given, artifacts, episode_data
from rllib_compat.errors import CompatError, FileSystemError
from rllib_compat.formats import local_path, storage_path
from tests.security.test_promises import OF_OURS, PATHS, taking_paths

OLD = Path(compat.__file__).parent / "demo_data"
PPO = {"algorithm": "PPO"}

#: Options of the command line for text that is no path.
TEXTS = {
    *("algorithm", "args", "checkpoint_score_attr", "data", "env", "experiment_name", "labels"),
    *("export_formats", "legacy_ray", "loggers", "model", "only", "packages", "policy"),
    *("policy_mapping_fn", "ray_address", "ray_memory", "ray_num_nodes", "ray_redis_max_memory"),
    *("run", "scheduler", "skip", "sync_function", "trial_name_creator", "trust"),
}
#: Text that is a path and more than that (`file.py:NAME`), or may be an address.
TEXTS_WITH_PATHS = {
    *(("config", "file"), ("run", "script"), ("run", "old_ray")),
    *(("train", name) for name in ("words", "config_file", "local_dir", "upload_dir")),
}


@pytest.fixture
def forms(tmp_path, monkeypatch):
    """Writes a path below the home folder in all ways."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")

    def write(name):
        path = tmp_path / name
        relative = os.path.relpath(path)
        return [f"~/{name}", relative, Path(relative), Path(f"~/{name}"), path, path.as_uri()]

    return write


def test_each_form_is_the_same_path(forms, tmp_path):
    for form in forms("a folder"):
        assert local_path(form).resolve() == tmp_path / "a folder"
        assert Path(storage_path(form)).is_absolute()
        assert Path(storage_path(form)).resolve() == tmp_path / "a folder"
    assert local_path("file:/x") == local_path("file://localhost/x") == Path("/x")
    assert local_path("~nobody-of-that-name/x") == Path("~nobody-of-that-name/x")
    assert storage_path("s3://bucket/x") == "s3://bucket/x"


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("https://github.com/me/repo/checkpoint-100", "curl -LO"),
        ("file://tmp/x", "/tmp/x"),
        ("abc://x", "pyarrow or fsspec"),
    ],
)
def test_an_address_of_another_machine_is_an_error(address, told):
    with pytest.raises(FileSystemError) as caught:
        compat.inspect(address)
    assert told in str(caught.value)


def test_the_command_line_takes_each_form_for_each_path(forms, tmp_path, run):
    verbs = re.findall(r"^  (\w+)  ", run("--help")[1], re.MULTILINE)
    (tmp_path / "x").touch()
    for verb in verbs:
        for option in importlib.import_module(f"rllib_compat.cli.{verb}").command.params:
            if option.type.name == "text":
                known = option.name in TEXTS or (verb, option.name) in TEXTS_WITH_PATHS
                assert known, f"is {option.name} of {verb} a path? Then its type is `LocalPath`"
            elif option.type.name in ("file", "path", "directory", "path or address"):
                for form in forms("x"):
                    found = option.type.convert(form, option, None)
                    assert found.resolve() == tmp_path / "x", (verb, option.name)


#: Arguments that this package or Tune gives, and those that start Ray (`integration/test_saving`).
OTHERS = r"^Trainer\.|^load path|take_back|tune\.Trainable|^adapters\.Readers"


@pytest.mark.parametrize(
    ("name", "content", "command"),
    [
        ("ppo.json", '{"lr": 0.1}', ["config", "FILE", "--algorithm", "PPO"]),
        ("ppo.py", 'CONFIG = {"lr": 0.1}', ["config", "FILE:CONFIG", "--algorithm", "PPO"]),
        ("exp.yaml", "one: {run: PPO, env: CartPole-v1}", ["train", "--dry-run", "-f", "FILE"]),
        ("exp.yaml", "one: {run: PPO, env: CartPole-v1}", ["train", "--dry-run", "file", "FILE"]),
        ("script.py", "print(1)", ["run", "FILE"]),
    ],
)
def test_text_that_is_a_path_and_more(forms, tmp_path, run, name, content, command):
    pytest.importorskip("ray")
    (tmp_path / name).write_text(content)
    for form in forms(name):
        code, _, err = run(*(word.replace("FILE", str(form)) for word in command))
        assert code == 0, err


def verify(**given):
    known = {"old": OLD, "new": "new", "inputs": 5, **PPO, **given}
    return [(row.output, row.absolute) for row in compat.verify(**known).differences]


def convert(old=OLD, **given):
    done = compat.convert(old, "none", overwrite=True, inputs=5, to="msgpack", **PPO, **given)
    return [row.output for row in done.differences]


def extract(checkpoint):
    shutil.rmtree("extracted", ignore_errors=True)
    return artifacts.extract(checkpoint, "extracted")


def record(path):
    from rllib_compat.runtime.offline.files import Writer

    return Writer(compat.adapters.Recording(path), 0)


def log(path):
    logger = compat.tune.UnifiedLogger({}, path)
    logger.on_result({"training_iteration": 1})
    logger.close()


def list_parquet(path):
    return [file.name for file in Path(compat.adapters.as_parquet(path)).iterdir()]


def find_old_ray(path):
    with pytest.raises(CompatError, match="no folder ray/rllib/examples"):
        compat.activate(old_ray=path)


#: What is read by each argument, and what is told of it.
READS = {
    "Given.with_arguments config": ("ppo.json", lambda path: Given().with_arguments(config=path)),
    "convert config": ("ppo.json", lambda path: convert(config=path)),
    "inspect config": ("ppo.json", lambda p: compat.inspect(OLD, config=p, **PPO).report.facts),
    "load config": ("ppo.json", lambda path: Given().with_arguments(config=path)),
    "load_policy config": (
        "ppo.json",
        lambda p: compat.load_policy(OLD, config=p, **PPO).policy_id,
    ),
    "verify config": ("ppo.json", lambda path: verify(config=path)),
    "activate old_ray": ("old", find_old_ray),
    "adapters.as_parquet source": ("recordings", list_parquet),
    "artifacts.extract checkpoint": ("artifacts", extract),
    "artifacts.read_manifest checkpoint": ("artifacts", artifacts.read_manifest),
    "artifacts.verify checkpoint": ("artifacts", artifacts.verify),
    "convert old": ("old", convert),
    "convert recorded": ("recorded.npz", lambda path: convert(recorded=path)),
    "convert observations": ("observations.npz", lambda path: convert(observations=path)),
    "episode_data.read_episodes path": ("data", lambda p: [*episode_data.read_episodes(p)]),
    "inspect path": ("old", lambda path: compat.inspect(path, **PPO).checkpoint.counters),
    "legacy.activate old_ray": ("old", find_old_ray),
    "load_policy path": ("old", lambda path: compat.load_policy(path, **PPO).policy_id),
    "verify old": ("old", lambda path: verify(old=path)),
    "verify new": ("here/new", lambda path: verify(new=path)),
    "verify recorded": ("recorded.npz", lambda path: verify(recorded=path)),
    "verify observations": ("observations.npz", lambda path: verify(observations=path)),
}
#: What is written by each argument.
WRITES = {
    "adapters.Recording path": record,
    "artifacts.extract target": lambda path: artifacts.extract("../artifacts", path),
    "convert new": lambda path: compat.convert(OLD, path, to="msgpack", inputs=5, **PPO),
    "tune.UnifiedLogger logdir": log,
}


@pytest.fixture
def files(forms, tmp_path):
    """One of each thing that is read."""
    shutil.copytree(OLD, tmp_path / "old")
    (tmp_path / "ppo.json").write_text('{"env": "CartPole-v0"}')
    shutil.copy(OLD / "expected.npz", tmp_path / "recorded.npz")
    np.savez(tmp_path / "observations.npz", obs=np.zeros((3, 4), np.float32))
    compat.convert(OLD, "new", to="msgpack", inputs=5, **PPO)
    (tmp_path / "artifacts" / "artifacts").mkdir(parents=True)
    artifacts.Manifest(time=0.0, iteration=3).write(tmp_path / "artifacts" / "artifacts")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "train-00000001.jsonl").write_text('{"iteration": 1}\n')
    (tmp_path / "recordings").mkdir()
    step = {"obs": [[0.0]], "actions": [0], "rewards": [1.0], "dones": [True], "eps_id": [1]}
    record = json.dumps({"type": "SampleBatch", **step})
    (tmp_path / "recordings" / "output-0.json").write_text(f"{record}\n")


def test_each_public_argument_for_a_path_is_tried():
    pytest.importorskip("ray")
    found = {
        f"{name} {argument.name}"
        for name, function in taking_paths()
        if not re.search(OF_OURS, name)
        for argument in inspect.signature(function).parameters.values()
        if argument.name in PATHS or "Path" in str(argument.annotation)
    }
    assert {name for name in found if not re.search(OTHERS, name)} == READS.keys() | WRITES.keys()


@pytest.mark.parametrize("argument", READS)
def test_each_form_reads_the_same(files, forms, argument):
    name, read = READS[argument]
    told = [repr(read(form)) for form in forms(name)]
    assert len(set(told)) == 1


@pytest.mark.parametrize("argument", WRITES)
def test_each_form_writes_the_same_folder(files, forms, tmp_path, argument):
    for form in forms("written"):
        WRITES[argument](form)
        shutil.rmtree(tmp_path / "written")
        assert not list(Path().glob("[~f]*")), "a folder called ~ or file:"


def test_artifacts_are_found_beside_the_state_that_save_returns_to_old_code(tmp_path, run):
    (tmp_path / "checkpoint" / "artifacts").mkdir(parents=True)
    artifacts.Manifest(time=0.0, iteration=3).write(tmp_path / "checkpoint" / "artifacts")
    state = tmp_path / "checkpoint" / "algorithm_state.pkl"
    state.touch()
    assert artifacts.read_manifest(state).iteration == 3
    assert artifacts.verify(state) == []
    artifacts.extract(state, tmp_path / "extracted")
    assert run("artifacts", state, "--verify")[0] == 0
