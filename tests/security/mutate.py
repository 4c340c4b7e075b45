"""Structure-aware mutations of the files of a checkpoint.

A flipped byte mostly ends a file at once. These change what a file *says*: an opcode of a pickle
(also of one that lies as bytes inside of another), a node of a msgpack or JSON tree, the type of a
field; and whole files: cut, swapped, emptied, taken away.
"""

from __future__ import annotations

import io
import json
import pickle
import pickletools
import random
import struct
from collections.abc import Callable
from typing import Any

import msgpack
import numpy as np

Files = dict[str, bytes]

#: What a field becomes: one of each type, and sizes that nobody expects.
STRANGE: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 7, 1 << 31, 1 << 62, (1 << 64) - 1, -(1 << 63),
    0.0, 0.5, -1.5, 1e308, float("nan"), float("inf"), "", "0", "a", "../../x", "/etc/passwd",
    "module.Class", "CartPole-v1", "PPO", "Discrete(2000000000)", "Box(0, 1, (99999, 99999))",
    "a." * 32 + " ", "\x00", "\x1b[31m", "é" * 100, "x" * 5000, b"", b"\x80\x04N.", b"abc",
    [], {}, [None], [[]], [1, 2], {"a": 1}, {"weights": {}}, [{}], {"space": "box"},
)  # fmt: skip

#: What a field of a pickle may become besides.
_ARRAYS = (
    np.array([1, 2]), np.array(5), np.zeros((2, 0)), np.array([None, {}], object),
    np.full(3, np.nan), np.array(["a"]), np.float32("nan"), np.datetime64("2020"),
)  # fmt: skip

_PUSH = [
    b"N", b"\x88", b"\x89", b"]", b"}", b")", b"K\x07", b"J\xff\xff\xff\xff", b"\x8c\x01a",
    b"C\x01a", b"\x8f", b"G\x7f\xf8" + bytes(6), b"\x8a\x09" + b"\xff" * 8 + b"\x00",
    b"cos\nsystem\n", b"cbuiltins\nlist\n", b"ccollections\nOrderedDict\n)R", b"2", b"0", b"(",
]  # fmt: skip
#: How many opcodes behind a key its value is looked for.
_NEAR = 400
_ONE_BYTE = b"N\x88\x89]})\x8f2l(te0\x85\x86\x87asuRb\x81\x94.d\x90\x91o1"


def mutate(files: Files, rng: random.Random, others: Files, part: str = "") -> Files:
    """The files of a checkpoint with one to three changes.

    Args:
        files: The files by path.
        rng: Where chance comes from.
        others: The files of another checkpoint, to swap some in.
        part: Text; if it is given, the changes come shortly behind it, or below a key with it.
    """
    changed = dict(files)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        names = [name for name in changed if changed[name] and part.encode() in changed[name]]
        if not names:
            break
        name = rng.choice(names)
        if not part and rng.random() < 0.06:
            _whole_file(changed, name, rng, others)
        else:
            changed[name] = _inside(name, changed[name], rng, part)
    return changed


def _whole_file(files: Files, name: str, rng: random.Random, others: Files) -> None:
    kind = rng.randrange(6)
    if kind == 0:
        del files[name]
    elif kind == 1:
        files[name] = b""
    elif kind == 2:
        files[name] = rng.choice(list(others.values()))
    elif kind == 3:
        other = rng.choice(list(files))
        files[name], files[other] = files[other], files[name]
    elif kind == 4:
        files[rng.choice(list(others))] = rng.choice(list(others.values()))
    else:
        folder, _, last = name.rpartition("/")
        files[f"{folder}/{rng.choice(('NUL', 'a', '.x', 'é', 'x' * 200))}/{last}".lstrip("/")] = (
            files.pop(name)
        )


def _inside(name: str, data: bytes, rng: random.Random, part: str) -> bytes:
    if rng.random() < 0.1:
        return _bytes(data, rng, part)
    try:
        if name.endswith(".json"):
            return json.dumps(_tree(json.loads(data), rng, for_json=True)).encode()
        if name.endswith((".msgpck", ".msgpack")):
            tree = msgpack.unpackb(data, strict_map_key=False)
            return msgpack.packb(_tree(tree, rng, part=part), default=str)
        if data[:1] in (b"\x80", b"(", b"}", b"]"):
            return _pickle(data, rng, part)
    except (ValueError, TypeError, OverflowError, RecursionError, struct.error):
        pass  # it was damaged before
    return _bytes(data, rng, part)


def _bytes(data: bytes, rng: random.Random, part: str) -> bytes:
    start = max(data.find(part.encode()), 0)
    at = start + rng.randrange(len(data) - start) if data else 0
    kind = rng.randrange(4)
    if kind == 0:
        return data[:at]
    if kind == 1:
        return data[:at] + data[at + rng.randrange(1, 9) :]
    if kind == 2:
        return data[:at] + rng.randbytes(rng.randrange(1, 5)) + data[at:]
    return data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]


def _tree(tree: Any, rng: random.Random, *, for_json: bool = False, part: str = "") -> Any:
    """A tree of dicts and lists with one node changed."""
    places: list[tuple[Any, Any]] = []
    waiting = [(tree, not part)]
    while waiting and len(places) < 5000:
        node, inside = waiting.pop()
        parts = node.items() if isinstance(node, dict) else enumerate(node)
        for key, inner in parts:
            below = inside or part in str(key)
            if below:
                places.append((node, key))
            if isinstance(inner, (dict, list)):
                waiting.append((inner, below))
    if not places:
        return rng.choice([s for s in STRANGE if not (for_json and isinstance(s, bytes))])
    node, key = rng.choice(places)
    kind = rng.randrange(8)
    if kind == 0 and isinstance(node, (dict, list)):
        del node[key]
    elif kind == 1:
        other, other_key = rng.choice(places)
        try:
            if not _within(node, other[other_key]):
                node[key] = other[other_key]
        except (IndexError, KeyError):
            pass
    elif kind == 2 and isinstance(node, dict):
        name = rng.choice([s for s in STRANGE if isinstance(s, str if for_json else (str, int))])
        node[name] = node.pop(key)
    elif kind == 3:
        node[key] = [node[key]]
    elif kind == 4 and isinstance(node[key], (str, bytes)):
        node[key] = node[key][: rng.randrange(len(node[key]) + 1)]
    else:
        node[key] = rng.choice([s for s in STRANGE if not (for_json and isinstance(s, bytes))])
    return tree


def _within(node: Any, part: Any) -> bool:
    """Whether `part` contains `node`, so that to put it there would close a circle."""
    waiting = [part]
    while waiting:
        part = waiting.pop()
        if part is node:
            return True
        if isinstance(part, (dict, list)):
            waiting += part.values() if isinstance(part, dict) else part
    return False


def _opcodes(data: bytes) -> list[tuple[str, Any, bytes]]:
    """The opcodes of a pickle with their arguments and bytes."""
    found = [(op.name, arg, at) for op, arg, at in pickletools.genops(io.BytesIO(data))]
    ends = [at for _, _, at in found[1:]] + [len(data)]
    return [(name, arg, data[at:end]) for (name, arg, at), end in zip(found, ends, strict=True)]


def _pickle(data: bytes, rng: random.Random, part: str) -> bytes:
    """A pickle with one opcode changed, its frames taken out."""
    ops = [op for op in _opcodes(data) if op[0] != "FRAME"]
    nested = [
        i
        for i, (_, arg, _) in enumerate(ops)
        if isinstance(arg, bytes) and _is_nested(arg) and part.encode() in arg
    ]
    if nested and rng.random() < 0.7:
        at = rng.choice(nested)
        inner = _pickle(ops[at][1], rng, part)
        return _join(ops, at, at + 1, b"B" + struct.pack("<I", len(inner)) + inner)
    starts = [
        i for i, (_, arg, _) in enumerate(ops) if part and isinstance(arg, str) and part in arg
    ]
    if starts:
        start = rng.choice(starts)
        at = rng.randrange(start, min(start + _NEAR, len(ops)))
    else:
        at = rng.randrange(len(ops))
    name, arg, raw = ops[at]
    change: Callable[[], bytes]
    choices: list[Callable[[], bytes]] = [
        lambda: b"",
        lambda: raw + raw,
        lambda: rng.choice(_PUSH),
        lambda: bytes([rng.choice(_ONE_BYTE)]),
        lambda: ops[rng.randrange(len(ops))][2],
    ]
    if isinstance(arg, (str, int, float, bytes)) and name not in ("PROTO", "GLOBAL", "INST"):
        choices += [lambda: _value(arg, name, rng)] * 6
    change = rng.choice(choices)
    return _join(ops, at, at + 1, change())


def _value(arg: Any, name: str, rng: random.Random) -> bytes:
    if "PUT" in name or "GET" in name:
        return (name.startswith("LONG_") and b"") or bytes([b"h"[0], rng.randrange(256)])
    if isinstance(arg, str) and rng.random() < 0.3:
        value: Any = arg[:-1] or "x"
    elif isinstance(arg, int) and rng.random() < 0.4:
        value = arg + rng.choice((-1, 1, 100, -arg, 1 << 40))
    elif isinstance(arg, bytes) and rng.random() < 0.4:
        value = arg[: rng.randrange(len(arg) + 1)]
    else:
        value = rng.choice(STRANGE + _ARRAYS)
    return pickletools.optimize(pickle.dumps(value, 2))[2:-1]  # without entries of the memo


def _join(ops: list[tuple[str, Any, bytes]], start: int, end: int, new: bytes) -> bytes:
    return b"".join([*(op[2] for op in ops[:start]), new, *(op[2] for op in ops[end:])])


def _is_nested(data: bytes) -> bool:
    return len(data) > 20 and data[:1] == b"\x80" and data[-1:] == b"."
