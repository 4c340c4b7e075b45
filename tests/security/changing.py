"""Sources that change while they are read.

At each moment at which a door opens or lists something below its source, one thing is done to it:
the file becomes shorter, longer, another, or goes, alone or with its folder. The moments are
audit events, so none is left out: `moments` counts them, `read` starts a door that is disturbed at
one. `python -m tests.security.changing 60` disturbs all doors from a second process, for so many
seconds each, which also hits moments between two reads of one file; a door that ends by a signal,
as a file that is mapped and becomes shorter ends a process, is told.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import itertools
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

import rllib_compat as compat
from rllib_compat import artifacts
from rllib_compat.cli import main as start
from rllib_compat.conversion import recordings
from rllib_compat.episode_data import read_episodes
from rllib_compat.formats import list_globals
from rllib_compat.formats.layouts.search import find_checkpoints
from rllib_compat.neutral.errors import CompatError
from rllib_compat.runtime.offline.files import find_files, read_lines
from rllib_compat.trials import find_trials, read_trial
from tests.legacy.cases import MUSEUM
from tests.security import payloads

Door = Callable[[Path, Path], object]


def _folder_of_v0_1(place: Path) -> Path:
    return Path(shutil.copytree(resources.files("rllib_compat") / "demo_data", place))


def _policy_file(place: Path) -> Path:
    place.mkdir()
    demo = resources.files("rllib_compat") / "demo_data"
    file = place / "policy.rlpolicy"
    compat.convert(demo, file, to="policy", algorithm="PPO", inputs=2)
    return place


def _tree(place: Path) -> Path:
    return Path(shutil.copytree(MUSEUM / "2.40.0/ppo-torch_new-small-relu/ckpt", place))


def _old_folder(place: Path) -> Path:
    return payloads.v1(place)


def _msgpack(place: Path) -> Path:
    compat.convert(payloads.v0_1(place.with_name("old")), place, to="msgpack")
    return place


def _recording(place: Path) -> Path:
    place.mkdir()
    np.savez(place / "recorded.npz", **{"default_policy/obs": np.zeros((100, 4))})
    return place


def _trial(place: Path) -> Path:
    return Path(shutil.copytree(MUSEUM / "1.13.0/ppo-torch-tunerun", place))


def _artifacts(place: Path) -> Path:
    from rllib_compat.artifacts.manifest import Manifest, StoredFile, StoredFolder

    stored = StoredFile("a", 10, hashlib.sha256(bytes(10)).hexdigest(), 0.0)
    folder = place / "artifacts"
    (folder / "files" / "runner-1" / "env-0").mkdir(parents=True)
    (folder / "files" / "runner-1" / "env-0" / "a").write_bytes(bytes(10))
    Manifest(0.0, 1, [StoredFolder(1, False, 0, "node", "/tmp", files=[stored])]).write(folder)
    return place


def _episodes(place: Path) -> Path:
    place.mkdir()
    for number in range(2):
        (place / f"train-{number:08}.jsonl").write_text('{"episode": 1, "reward": 1.0}\n' * 20)
    return place


def _steps(place: Path) -> Path:
    place.mkdir()
    (place / "output-1.json").write_text('{"type": "SampleBatch", "obs": [[1.0]]}\n' * 20)
    return place


def _configs(place: Path) -> Path:
    place.mkdir()
    (place / "a.json").write_text('{"num_workers": 2}')
    (place / "b.yaml").write_text("num_workers: 2")
    (place / "c.py").write_text("CONFIG = {'num_workers': 2}")
    return place


def _read_configs(source: Path) -> None:
    for name in ("a.json", "b.yaml", "c.py:CONFIG"):
        _start("config", str(source / name))


def _code(place: Path) -> Path:
    (place / "inner").mkdir(parents=True)
    for name in ("a.py", "inner/b.py"):
        (place / name).write_text("from ray.rllib.agents.ppo import PPOTrainer\n")
    return place


def _start(*command: str) -> None:
    """Runs a verb; an error that it does not know is one here, too."""
    said = io.StringIO()
    with (
        contextlib.suppress(SystemExit),
        contextlib.redirect_stderr(said),
        contextlib.redirect_stdout(said),
    ):
        start(list(command))
    if "Traceback" in said.getvalue():
        raise RuntimeError(said.getvalue()[-400:])


#: What each door is given, and what it does with it and a folder for its output.
DOORS: dict[str, tuple[Callable[[Path], Path], Door]] = {
    "inspect": (_folder_of_v0_1, lambda old, _: compat.inspect(old)),
    "inspect a folder of 1.x": (_old_folder, lambda old, _: compat.inspect(old)),
    "inspect a tree": (_tree, lambda old, _: compat.inspect(old)),
    "inspect msgpack": (_msgpack, lambda old, _: compat.inspect(old)),
    "inspect --globals": (_folder_of_v0_1, lambda old, _: list_globals(old)),
    "find": (_folder_of_v0_1, lambda old, _: list(find_checkpoints(old))),
    "convert": (
        _folder_of_v0_1,
        lambda old, new: compat.convert(old, new / "new", to="msgpack", algorithm="PPO", inputs=2),
    ),
    "load_policy of one file": (
        _policy_file,
        lambda old, _: compat.load_policy(old / "policy.rlpolicy"),
    ),
    "convert --to safetensors": (
        _folder_of_v0_1,
        lambda old, new: compat.convert(old, new / "new", to="safetensors", algorithm="PPO"),
    ),
    "verify": (_tree, lambda old, _: compat.verify(old, old)),
    "load_policy": (_folder_of_v0_1, lambda old, _: compat.load_policy(old, algorithm="PPO")),
    "--recorded": (_recording, lambda old, _: recordings.load(old / "recorded.npz")),
    "plot": (_trial, lambda old, _: [read_trial(file) for file in find_trials(old)]),
    "artifacts": (_artifacts, lambda old, _: str(artifacts.read_manifest(old))),
    "artifacts --verify": (_artifacts, lambda old, _: artifacts.verify(old)),
    "artifacts --extract": (_artifacts, lambda old, new: artifacts.extract(old, new / "new")),
    "episodes": (_episodes, lambda old, _: list(read_episodes(old))),
    "input": (
        _steps,
        lambda old, _: [row for file in find_files(str(old)) for row in read_lines(file)],
    ),
    "config": (_configs, lambda old, _: _read_configs(old)),
    "upgrade": (_code, lambda old, _: _start("upgrade", str(old), "--diff")),
}

FAULTS: dict[str, Callable[[Path], object]] = {
    "shorter": lambda file: os.truncate(file, file.stat().st_size // 2),
    "empty": lambda file: os.truncate(file, 0),
    "longer": lambda file: file.write_bytes(file.read_bytes() * 2),
    "another": lambda file: (
        file.with_name("another").write_bytes(b"\x80\x02}q\x00.")
        and file.with_name("another").replace(file)
    ),
    "a folder": lambda file: (file.unlink(), file.mkdir()),
    "a pipe": lambda file: (file.unlink(), os.mkfifo(file)),
    "gone": lambda file: file.unlink(),
    "folder gone": lambda file: shutil.rmtree(file.parent),
}

_EVENTS = {"open": 0, "os.listdir": 0, "os.scandir": 0}
_watch: Callable[[Path], None] | None = None


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if _watch is not None and event in _EVENTS and isinstance(arguments[0], (str, os.PathLike)):
        _watch(Path(arguments[0]))


sys.addaudithook(_hook)


def read(door: str, folder: Path, moment: int = -1, fault: str = "") -> tuple[int, str]:
    """Starts a door, and does something to its source meanwhile.

    Args:
        door: Which of `DOORS`.
        folder: An empty folder, or one that is not there yet.
        moment: Before which of the times that it opens or lists something; -1: never.
        fault: Which of `FAULTS`.

    Returns:
        How often it opened or listed something, and what came of it: `""`, or the error's text.
    """
    global _watch
    make, act = DOORS[door]
    folder.mkdir(exist_ok=True)
    source, count = make(folder / "source"), 0

    def watch(path: Path) -> None:
        nonlocal count
        global _watch
        if source in (path, *path.parents):
            if count == moment:
                _watch = None
                files = (
                    [path] if path.is_file() else sorted(p for p in path.iterdir() if p.is_file())
                )
                for file in files[:1]:
                    FAULTS[fault](file)
            count += 1

    _watch, said = watch, ""
    try:
        act(source, folder / "out")
    except CompatError as error:
        said = str(error)
    finally:
        _watch = None
    return count, said


def disturb(door: str, folder: Path, seconds: float) -> Counter[str]:
    """Reads again and again, while another process changes the source; returns what came of it."""
    make, act = DOORS[door]
    source = make(folder / "source")
    shutil.copytree(source, folder / "whole")
    files = [file.relative_to(source) for file in source.rglob("*") if file.is_file()]
    changer = os.fork()
    if changer == 0:
        chance = random.Random(0)
        while True:
            file = chance.choice(files)
            with contextlib.suppress(OSError, shutil.Error):
                FAULTS[chance.choice(["shorter", "empty", "longer", "another", "gone"])](
                    source / file
                )
                time.sleep(chance.uniform(0, 0.002))
                shutil.copytree(folder / "whole", source, dirs_exist_ok=True)
    found, ends = Counter[str](), time.monotonic() + seconds
    while time.monotonic() < ends:
        reader = os.fork()
        if reader == 0:
            code = 1
            try:
                for number in range(20):
                    with contextlib.suppress(CompatError):
                        act(source, folder / f"out{os.getpid()}-{number}")
                code = 0
            except BaseException as error:
                print(f"{door}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
            finally:
                os._exit(code)
        _, status = os.waitpid(reader, 0)
        killed = os.WIFSIGNALED(status)
        found["read"] += 20
        found[signal.Signals(os.WTERMSIG(status)).name if killed else "uncaught"] += status != 0
    os.kill(changer, signal.SIGKILL)
    os.waitpid(changer, 0)
    return found


def main() -> None:
    """Prints what so many seconds of each door have shown."""
    tried = 0
    for door in DOORS:
        uncaught = Counter[str]()
        with tempfile.TemporaryDirectory() as folder:
            moments, _ = read(door, Path(folder))
        for moment, fault in itertools.product(range(moments), FAULTS):
            with tempfile.TemporaryDirectory() as folder:
                tried += 1
                try:
                    read(door, Path(folder), moment, fault)
                except Exception as error:
                    uncaught[f"{fault} at {moment}: {type(error).__name__}: {error}"[:150]] += 1
        print(f"{door}: {moments} moments, uncaught {dict(uncaught)}", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            seconds = float(sys.argv[1])
            if seconds:
                print(f"  {dict(disturb(door, Path(folder), seconds))}", flush=True)
    print(f"{tried} disturbed at a known moment")


if __name__ == "__main__":
    main()
