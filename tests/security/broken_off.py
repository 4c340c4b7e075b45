"""Writers that are broken off: by a disk that is full or read-only, or by Ctrl-C.

At each moment at which a verb opens, makes, renames or removes something that is to be written, the
system refuses, or the user presses Ctrl-C. What was there before must be there as it was, or what
was to be written, whole; nothing may be left beside it. `python -m tests.security.broken_off` does
it at each moment; the moments are audit events, so none is left out. With a number behind it, so
many commands of each verb get the signal at random times.
"""

from __future__ import annotations

import contextlib
import errno
import io
import itertools
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from subprocess import PIPE, STDOUT
from typing import Any

from rllib_compat.cli import main as start
from tests.legacy.cases import MUSEUM
from tests.security import changing, payloads
from tests.trees import digest_tree

DEMO = str(Path(changing.__file__).parents[2] / "rllib_compat" / "demo_data")


def _custom(place: Path) -> list[str]:
    import torch

    old = payloads.v0_1(place / "old")
    state = {"a.weight": torch.zeros(2, 4), "a.bias": torch.zeros(2)}
    inner = payloads.dumps({"state": {"default_policy": {k: v.numpy() for k, v in state.items()}}})
    old.write_bytes(payloads.dumps({"worker": inner}))
    spaces = ["--observation-space", "Box(4,)", "--action-space", "Discrete(2)"]
    target = str(place / "out" / "model.py")
    return ["convert", str(old), str(place / "out" / "new"), "--write-model", target, *spaces,
            "--algorithm", "PPO", "--config", '{"model": {"custom_model": "x"}}']  # fmt: skip


def _upgrade(place: Path) -> list[str]:
    changing._code(place / "out")
    return ["upgrade", str(place / "out")]


def _plot(place: Path) -> list[str]:
    trial = shutil.copytree(MUSEUM / "1.13.0/ppo-torch-tunerun", place / "trial")
    return ["plot", str(trial), "--out", str(place / "out" / "p.png")]


def _extract(place: Path) -> list[str]:
    old = changing._artifacts(place / "old")
    return ["artifacts", str(old), "--extract", str(place / "out" / "new")]


def _two(place: Path) -> Path:
    for number in range(2):
        shutil.copytree(DEMO, place / str(number))
    return place


def _convert(form: str, name: str = "new") -> Callable[[Path], list[str]]:
    return lambda place: [
        *("convert", DEMO, str(place / "out" / name), "--to", form, "--algorithm", "PPO")
    ]


#: What is to be written below `out`.
WRITERS: dict[str, Callable[[Path], list[str]]] = {
    "artifacts --extract": _extract,
    "convert --to msgpack": _convert("msgpack"),
    "convert --to safetensors": _convert("safetensors"),
    "convert --to onnx": _convert("onnx"),
    "convert --to policy": _convert("policy", "new.rlpolicy"),
    "convert --to hub": _convert("hub"),
    "convert --write-model": _custom,
    "convert --recursive": lambda place: [
        *("convert", str(_two(place / "old")), str(place / "out" / "new")),
        *("--recursive", "--to", "msgpack", "--algorithm", "PPO"),
    ],
    "evaluate --out": lambda place: [
        *("evaluate", DEMO, "--run", "PPO", "--env", "CartPole-v1", "--episodes", "1"),
        *("--out", str(place / "out" / "steps.pkl"), "--track-progress"),
    ],
    "plot": _plot,
    "upgrade": _upgrade,
}
#: Seconds after which most are done.
LONGEST = 6.0
#: They go on with the next file.
GO_ON = ("upgrade", "convert --recursive")
REFUSALS = {
    "full": OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
    "read-only": OSError(errno.EROFS, os.strerror(errno.EROFS)),
    "Ctrl-C": KeyboardInterrupt(),
}

_EVENTS = {"os.mkdir": 0, "os.rename": 1, "os.link": 1, "os.chmod": 0}
_watch: Callable[[Path], None] | None = None


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if _watch is None:
        return
    place = arguments[_EVENTS[event]] if event in _EVENTS else None
    if event == "open" and isinstance(arguments[2], int) and arguments[2] & os.O_CREAT:
        place = arguments[0]
    if isinstance(place, (str, os.PathLike)):
        _watch(Path(place))


sys.addaudithook(_hook)


def write(verb: str, folder: Path, moment: int = -1, refusal: str = "") -> tuple[int, list[str]]:
    """Starts a writer and breaks it off.

    Args:
        verb: Which of `WRITERS`.
        folder: A folder that is not there yet.
        moment: Before which of the times that it opens, makes or renames something; -1: never.
        refusal: Which of `REFUSALS`.

    Returns:
        How often it did so, and what is wrong with what it left.
    """
    global _watch
    folder.mkdir()
    (folder / "out").mkdir()
    command = WRITERS[verb](folder)
    before = digest_tree(folder / "out")
    count, said, code = 0, io.StringIO(), 0

    def watch(path: Path) -> None:
        nonlocal count
        if folder / "out" in path.parents:
            count += 1
            if count == moment + 1:
                raise REFUSALS[refusal]

    _watch = watch
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            start(command)
    except SystemExit as end:
        code = int(end.code or 0)
    finally:
        _watch = None
    wrong = ["traceback"] if "Traceback" in said.getvalue() else []
    wrong += _left(folder / "out")
    changed = digest_tree(folder / "out") != before
    if verb not in GO_ON and changed == (code == 2):
        wrong.append(f"exit {code}, and {'half of it' if changed else 'nothing'} is there")
    if moment < 0 and code == 2:
        wrong.append(said.getvalue()[-300:])
    return count, wrong


def _left(folder: Path) -> list[str]:
    names = sorted(path.name for path in folder.rglob("*"))
    return [f"left {name}" for name in names if name.startswith((".", "__progress"))]


def interrupt(verb: str, folder: Path, after: float) -> list[str]:
    """Presses Ctrl-C so many seconds after a verb has begun; returns what is wrong then."""
    folder.mkdir()
    (folder / "out").mkdir()
    command = [sys.executable, "-m", "rllib_compat", *WRITERS[verb](folder)]
    before = digest_tree(folder / "out")
    environ = {**os.environ, "PYTHONPATH": str(Path.cwd())}
    process = subprocess.Popen(
        command, env=environ, stdout=PIPE, stderr=STDOUT, start_new_session=True
    )
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(after)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGINT)
    said = process.communicate(timeout=60)[0].decode()
    wrong = _left(folder / "out")
    # Before Python has come as far as to the command, it tells of it itself.
    if "Traceback" in said and "rllib_compat/cli/__init__.py" in said:
        wrong.append(f"traceback {said[-200:]}")
    changed = digest_tree(folder / "out") != before
    if verb not in GO_ON and process.returncode not in (0, 1) and changed:
        wrong.append(f"exit {process.returncode}, and half of it is there")
    return wrong


def main() -> None:
    """Prints what was wrong."""
    tried = 0
    for verb in WRITERS:
        found = Counter[str]()
        with tempfile.TemporaryDirectory() as folder:
            moments, wrong = write(verb, Path(folder) / "in")
            found.update(wrong)
        for moment, refusal in itertools.product(range(moments), REFUSALS):
            with tempfile.TemporaryDirectory() as folder:
                tried += 1
                _, wrong = write(verb, Path(folder) / "in", moment, refusal)
                found.update(f"{refusal} at {moment}: {what}" for what in wrong)
        print(f"{verb}: {moments} moments, wrong {dict(found)}", flush=True)
    print(f"{tried} broken off")
    chance = random.Random(0)
    for verb in WRITERS:
        found = Counter[str]()
        for _ in range(int(sys.argv[1] if sys.argv[1:] else 0)):
            with tempfile.TemporaryDirectory() as folder:
                found.update(interrupt(verb, Path(folder) / "in", chance.uniform(0.3, LONGEST)))
        print(f"{verb}: Ctrl-C at random, wrong {dict(found)}", flush=True)


if __name__ == "__main__":
    main()
