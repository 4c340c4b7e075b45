"""Small checkpoints that stand for gigabytes or hours, and what each of them costs.

    python -m tests.security.bombs

prints a row a bomb: bytes of the file, seconds of the processor, megabytes of memory, and the
outcome. Each goes through inspect and convert in a process of its own.
"""

from __future__ import annotations

import base64
import json
import os
import pickle
import random
import sys
import tempfile
import traceback
import zlib
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import msgpack
import numpy as np

from tests.security import payloads

#: The doors that each is sent to.
SENT_TO = ("inspect", "convert", "names")

_PARAMS = {"env": "CartPole-v0", "num_workers": 1}


def _doubled(levels: int) -> Any:
    value: Any = ["x"]
    for _ in range(levels):
        value = [value, value]
    return value


def _circle() -> Any:
    value: list[Any] = [1]
    value.append({"again": value})
    return value


def _colliding(count: int) -> bytes:
    """A dict whose keys all have one hash: they are the same, modulo 2**61 - 1."""
    keys = (pickle.dumps(i * ((1 << 61) - 1), 2)[2:-1] for i in range(1, count))
    return b"}(" + b"".join(key + b"N" for key in keys) + b"u"


def _zlib_box(size: int) -> dict[str, Any]:
    """A Box of zeros as Ray writes it."""
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({size // 4},), }}".encode()
    pad = b" " * (63 - (10 + len(header)) % 64) + b"\n"
    npy = b"\x93NUMPY\x01\x00" + (len(header) + len(pad)).to_bytes(2, "little") + header + pad
    packer = zlib.compressobj(9)
    parts = [packer.compress(npy)]
    parts += [packer.compress(bytes(1 << 20)) for _ in range(size >> 20)]
    text = base64.b64encode(b"".join([*parts, packer.flush()])).decode()
    return {"space": "box", "low": text, "high": text, "shape": [size // 4], "dtype": "<f4"}


def _with_config(**config: Any) -> Callable[[Path], Path]:
    """Of Ray 0.8, with a `params.pkl`."""

    def make(folder: Path) -> Path:
        path = payloads.v0_1(folder)
        (folder / "params.json").unlink()
        (folder / "params.pkl").write_bytes(pickle.dumps(_PARAMS | config, 4))
        return path

    return make


def _with_json(text: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        path = payloads.v0_1(folder)
        (folder / "params.json").write_text(text)
        return path

    return make


def _with_worker(opcodes: bytes) -> Callable[[Path], Path]:
    """Of Ray 0.8, with opcodes beside the worker in the file."""

    def make(folder: Path) -> Path:
        folder.mkdir()
        inner = pickle.dumps({"state": {"default_policy": {"w": np.zeros(3)}}}, 2)
        worker = b"X\x06\x00\x00\x00worker" + payloads.long_bytes(inner)
        data = b"\x80\x03}(" + worker + b"X\x01\x00\x00\x00x](" + opcodes + b"eu."
        (folder / "checkpoint-1").write_bytes(data)
        return folder / "checkpoint-1"

    return make


def _many_policies(count: int) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        folder.mkdir()
        state = {"w": np.zeros(3, np.float32)}
        inner = pickle.dumps({"state": {str(i): state for i in range(count)}}, 4)
        (folder / "checkpoint-1").write_bytes(pickle.dumps({"worker": inner}, 4))
        return folder / "checkpoint-1"

    return make


def _ray_spaces(folder: Path) -> Path:
    path = payloads.v1(folder)
    box = _zlib_box(128 << 20)
    spaces = {"space": "tuple", "spaces": [box] * 20}
    spec = {"observation_space": spaces, "action_space": {"space": "discrete", "n": 2}}
    state = {"weights": {"w": np.zeros(3)}, "policy_spec": spec}
    file = folder / "policies" / "default_policy" / "policy_state.pkl"
    file.write_bytes(pickle.dumps(state, 4))
    return path


def _packed(data: bytes) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        folder.mkdir()
        (folder / "algorithm_state.msgpck").write_bytes(data)
        return folder

    return make


def _own(config: Any) -> Callable[[Path], Path]:
    """The form of this package, with a config as its plain data has it."""
    source = {"path": {"$": "Path", "v": "x"}, "layout": "0.1"}
    parts = {"source": {"$": "Source", "v": source}, "config": config}
    own = {"$": "LegacyCheckpoint", "v": parts}
    return _packed(msgpack.packb({"rllib_compat": own, "worker": {"policy_ids": []}}))


def _own_doubled(levels: int) -> Any:
    value: Any = {"$": "shared", "n": 0, "v": ["x"]}
    for level in range(1, levels):
        again = {"$": "again", "v": level - 1}
        value = {"$": "shared", "n": level, "v": [value, again]}
    return {"bomb": value}


def _spec(space: str) -> str:
    """A config with a policy of this space."""
    return json.dumps(
        {**_PARAMS, "multiagent": {"policies": {"default_policy": [None, space, space, {}]}}}
    )


_MANY = b"\xdd" + (5_000_000).to_bytes(4, "big")  # an array of so many

BOMBS: dict[str, Callable[[Path], Path]] = {
    "a discrete of two billion": _with_json(_spec("Discrete(2000000000)")),
    "a box of 10**10": _with_json(_spec("Box(0.0, 1.0, (100000, 100000), float32)")),
    "many binaries": _with_json(_spec("MultiBinary(2000000000)")),
    "a tree of tuples": _with_json(_spec("Tuple(" * 60 + "Discrete(2)" + ")" * 60)),
    "a text that backtracks": _with_json(json.dumps({**_PARAMS, "x": "a." * 32 + " "})),
    "many texts that backtrack": _with_json(
        json.dumps({**_PARAMS, "x": ["a." * 2000 + " "] * 300})
    ),
    "json of empty lists": _with_json('{"x": [' + "[]," * 2_000_000 + "[]]}"),
    "json that is deep": _with_json('{"x": ' + "[" * 100_000 + "]" * 100_000 + "}"),
    "shared lists in the config": _with_config(x=_doubled(64)),
    "a circle in the config": _with_config(x=_circle()),
    "keys that collide": _with_worker(_colliding(50_000)),
    "one text ten thousand times": _with_config(x=["y" * 1_000_000] * 10_000),
    "empty sets": _with_worker(b"\x8f" * 1_000_000),
    "empty dicts": _with_worker(b"}" * 1_000_000),
    "empty deques": _with_worker(b"ccollections\ndeque\nq\x000" + b"h\x00)R" * 500_000),
    "names": _with_worker(b"ca\nb\n" * 150_000),
    "stand-ins": _with_worker(b"ca\nb\nq\x000" + b"h\x00)R" * 400_000),
    # Just below what a budget refuses, where most is made of least.
    "empty sets that are read": _with_worker(b"\x8f" * 120_000),
    "deques that are read": _with_worker(b"ccollections\ndeque\nq\x000" + b"h\x00)R" * 55_000),
    "stand-ins that are read": _with_worker(b"ca\nb\nq\x000" + b"h\x00)R" * 50_000),
    "memos": _with_worker(b"N" + b"\x94" * 3_000_000),
    "marks": _with_worker(b"(" * 300_000 + b"1" * 300_000),
    "a hundred thousand policies": _many_policies(100_000),
    "twenty boxes in zlib": _ray_spaces,
    "msgpack of empty lists": _packed(_MANY + b"\x90" * 5_000_000),
    "msgpack of empty maps": _packed(_MANY + b"\x80" * 5_000_000),
    "msgpack that is deep": _packed(b"\x91" * 1_000_000 + b"\xc0"),
    "shared lists of our own": _own(_own_doubled(60)),
    "a discrete of our own": _own(
        {"x": {"$": "Discrete", "v": {"original_space": None, "n": 1 << 62, "start": 0}}}
    ),
    "a broadcast of our own": _own(
        {"x": {"$": "broadcast", "shape": [1 << 40], "v": {"nd": True}}}
    ),
}  # fmt: skip


def cost(bomb: str) -> dict[str, Any]:
    """Sends a bomb through the doors in a process of its own.

    Returns:
        Size of its files, seconds, bytes of memory above what the process had, and outcomes.
    """
    from tests.fuzz.doors import DOORS
    from tests.fuzz.run import peak

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        BOMBS[bomb](folder / "old")
        size = sum(p.stat().st_size for p in (folder / "old").rglob("*") if p.is_file())
        _warm_up()
        read_end, write_end = os.pipe()
        child = os.fork()
        if not child:
            os.close(read_end)
            outcomes = {"base": peak()}
            try:
                for door in SENT_TO:
                    outcomes[door] = _outcome(partial(DOORS[door].act, *_given(folder)))
            finally:
                os.write(write_end, json.dumps(outcomes).encode())
                os._exit(0)
        os.close(write_end)
        with os.fdopen(read_end) as pipe:
            outcomes = json.loads(pipe.read() or "{}")
        _, _, usage = os.wait4(child, 0)
    grown = usage.ru_maxrss * 1024 - outcomes.pop("base", 0)
    seconds = usage.ru_utime + usage.ru_stime
    return {"size": size, "seconds": seconds, "memory": grown, "outcomes": outcomes}


def _outcome(send: Callable[[], None]) -> str:
    from rllib_compat.errors import CompatError

    try:
        send()
    except CompatError as error:
        return f"{type(error).__name__}: {error.found}"[:200]
    except BaseException:
        return "UNCAUGHT " + traceback.format_exc()[-300:]
    return "taken"


@cache
def _warm_up() -> None:
    """Imports what the doors import, so that it is not counted."""
    from tests.fuzz.doors import DOORS

    with tempfile.TemporaryDirectory() as name:
        payloads.v0_1(Path(name) / "old")
        for door in SENT_TO:
            _outcome(partial(DOORS[door].act, *_given(Path(name))))


def _given(folder: Path) -> tuple[Path, Path, random.Random]:
    return folder / "old", folder / "new", random.Random(1)


def main() -> None:
    """Prints a row a bomb."""
    for bomb in sys.argv[1:] or BOMBS:
        row = cost(bomb)
        print(
            f"{bomb:32} {row['size']:>10,} B {row['seconds']:6.2f} s "
            f"{row['memory'] / 1e6:8.1f} MB  {row['outcomes']}",
            flush=True,
        )


if __name__ == "__main__":
    main()
