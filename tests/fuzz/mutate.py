"""Structure-aware mutations of the files of a checkpoint.

A flipped byte mostly ends a file at once. These change what a file *says*: an opcode of a pickle
(also of one that lies as bytes inside of another), a node of a msgpack or JSON tree, the type of a
field; a line of a log, a cell of a table, a word of a program; and whole files: cut, swapped,
emptied, taken away, made a link, a pipe or a folder.
"""

from __future__ import annotations

import io
import json
import pickle
import pickletools
import random
import re
import struct
import zipfile
from collections.abc import Callable
from typing import Any

import msgpack
import numpy as np
import yaml

from tests.security.canary import CALLED, MODULE

Files = dict[str, bytes]

#: What is no file: a link to what follows, a pipe, a folder.
LINK, PIPE, FOLDER = b"\0link\0", b"\0pipe\0", b"\0folder\0"

#: Paths that lead out of a mutant's folder, to a file that must stay as it is.
OUTSIDE = tuple("../" * levels + "canary/kept" for levels in range(1, 6))

#: What a field becomes: one of each type, and sizes that nobody expects.
STRANGE: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 7, 1 << 31, 1 << 62, (1 << 64) - 1, -(1 << 63),
    0.0, 0.5, -1.5, 1e308, float("nan"), float("inf"), "", "0", "a", "../../x", "/etc/passwd",
    "module.Class", "CartPole-v1", "PPO", "Discrete(2000000000)", "Box(0, 1, (99999, 99999))",
    "a." * 32 + " ", "\x00", "\x1b[31m", "é" * 100, "x" * 5000, b"", b"\x80\x04N.", b"abc",
    [], {}, [None], [[]], [1, 2], {"a": 1}, {"weights": {}}, [{}], {"space": "box"},
    10**12, 10**400, -(10**4299), 1 << 20_000, -1e308, 5e-324, "\ud800", "1e999", "9" * 5000,
    f"{MODULE}.{CALLED}", f"{MODULE}:Env", {"type": f"{MODULE}.{CALLED}"}, {"grid_search": []},
    {"": {"": ""}}, ["x"] * 3000, json.loads("[" * 300 + "]" * 300), *OUTSIDE,
)  # fmt: skip

#: A value as text that no tree can be dumped as.
_JSON = (
    "1e400", "-1e400", "NaN", "-0", "9" * 4300, "9" * 5000, "[" * 100_000, "1.5e-999", '"\\ud800"',
    '{"a":1,"a":2}', "tru", "", "\xff", "1" + "0" * 400 + ".5",
)  # fmt: skip
_YAML = (
    "0x" + "f" * 5000, "1:99:99:99", "2001-13-45", "2001-01-01", "&a [*a]", "*x", ".inf", ".nan",
    f"!!python/object/apply:{MODULE}.{CALLED} []", f"!!python/name:{MODULE}.{CALLED}",
    "!!binary x", "!!timestamp x", "!!int x", "!!set {a, b}", "!!omap [a: 1]", "{? [a] : 1}",
    "[" * 400, "{<<: 1}", "{<<: [&b {a: 1}, *b]}", '"\\ud800"', "0b" + "1" * 20_000,
    "0o" + "7" * 6000, "= ", "1_0",
)  # fmt: skip
_CODE = (
    "(", ")", "lambda", "async", "0" * 30, "1_", "f'{x!r}'", "*", "**", ":=", "\x0c", "\t", "\\",
    "é", "\0", "#", "'''", "-" * 300, "match x:", "x: int", "print >> f", "exec code", "`a`",
    "1L", "u''", "ray", "tune", "config", "None", "True", "[" * 150, "{**a}", "@", "\r",
    "from . import *",
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
_NAMES = ("NUL", "a", ".x", "é", "x" * 200, "\udcff", "a\nb", " ", "-x", "a:b", "%s", "\x1b[31m")
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
    kind = rng.randrange(9)
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
    elif kind == 5:
        places = (
            *OUTSIDE,
            "/etc/passwd",
            "/dev/zero",
            ".",
            "..",
            name.rpartition("/")[2],
            "nowhere",
        )
        files[name] = LINK + rng.choice(places).encode()
    elif kind == 6:
        files[name] = rng.choice((PIPE, FOLDER))
    else:
        folder, _, last = name.rpartition("/")
        files[f"{folder}/{rng.choice(_NAMES)}/{last}".lstrip("/")] = files.pop(name)


def _inside(name: str, data: bytes, rng: random.Random, part: str) -> bytes:
    if rng.random() < 0.1:
        return _bytes(data, rng, part)
    try:
        for ends, change in _KINDS:
            if name.endswith(ends):
                return change(data, rng, part)
        if data[:1] in (b"\x80", b"(", b"}", b"]"):
            return _pickle(data, rng, part)
    except Exception:  # it was damaged before
        pass
    return _bytes(data, rng, part)


def _json(data: bytes, rng: random.Random, part: str) -> bytes:
    """A document, or one of a document a line."""
    try:
        tree = json.loads(data)
    except ValueError:
        return _line(data, rng, part)
    text = json.dumps(_tree(tree, rng, for_json=True, part=part), allow_nan=True)
    return (_spliced(text, rng, _JSON) if rng.random() < 0.15 else text).encode()


def _line(data: bytes, rng: random.Random, part: str) -> bytes:
    lines = data.splitlines(keepends=True)
    at = rng.randrange(len(lines))
    kind = rng.randrange(10)
    if kind == 0:
        lines.insert(at, lines[rng.randrange(len(lines))])
    elif kind == 1:
        del lines[at]
    elif kind == 2:
        lines[at] = rng.choice((b"\n", b"7\n", b"{}\n", b"null\n", b"[]\n", b"x\n", b"\xff\n"))
    else:
        lines[at] = _json_line(lines[at], rng, part) + b"\n"
    return b"".join(lines)


def _json_line(line: bytes, rng: random.Random, part: str) -> bytes:
    text = json.dumps(_tree(json.loads(line), rng, for_json=True, part=part))
    return (_spliced(text, rng, _JSON) if rng.random() < 0.15 else text).encode()


def _yaml(data: bytes, rng: random.Random, part: str) -> bytes:
    tree = _tree(yaml.safe_load(data), rng, part=part)
    text = yaml.safe_dump(tree, sort_keys=False, allow_unicode=rng.random() < 0.5)
    return (_spliced(text, rng, _YAML) if rng.random() < 0.4 else text).encode("utf-8", "ignore")


def _spliced(text: str, rng: random.Random, odd: tuple[str, ...]) -> str:
    """A text with one of its scalars, or what looks like one, in another form."""
    places = [m.span() for m in re.finditer(r"(?<=[:\[,-] )[^\s,\]}]+|(?<=[:\[,])[^\s,\]}]+", text)]
    start, end = rng.choice(places) if places else (0, 0)
    return text[:start] + rng.choice(odd) + text[end:]


def _csv(data: bytes, rng: random.Random, _: str) -> bytes:
    lines = data.split(b"\n")
    at = rng.randrange(len(lines))
    cells = lines[at].split(b",")
    odd = [str(s).encode("utf-8", "replace") for s in STRANGE if not isinstance(s, int)]
    odd += [b'"', b"'", b"\0", b"\r", b'"' + b"x" * 200_000, b"\xff", b"1" * 5000]
    cells[rng.randrange(len(cells))] = rng.choice(odd)
    lines[at] = b",".join(cells)
    return b"\n".join(lines)


def _code(data: bytes, rng: random.Random, _: str) -> bytes:
    """A program with a word or a line changed."""
    text = data.decode("utf-8", "replace")
    if rng.random() < 0.3:
        lines = text.splitlines(keepends=True) or [""]
        at, other = rng.randrange(len(lines)), rng.choice(lines)
        lines[at] = rng.choice((other, "", lines[at] + other, " " + lines[at], lines[at].lstrip()))
        return "".join(lines).encode()
    words = re.split(r"(\w+|\s+)", text)
    at = rng.randrange(len(words))
    words[at] = rng.choice(
        (rng.choice(words), rng.choice(_CODE), "", words[at] + rng.choice(_CODE))
    )
    return "".join(words).encode("utf-8", "replace")


def _zip(data: bytes, rng: random.Random, part: str) -> bytes:
    """An archive with a member changed, or with another name, or packed otherwise."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    name = rng.choice(list(members))
    kind = rng.randrange(6)
    if kind == 0:
        members[rng.choice((*OUTSIDE, "/etc/x", "", "a/", *_NAMES))] = members.pop(name)
    elif kind == 1:
        del members[name]
    else:
        members[name] = _inside(name, members[name], rng, part)
    made, packed = (
        io.BytesIO(),
        rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA)),
    )
    with zipfile.ZipFile(made, "w", packed) as archive:
        for name, content in members.items():
            archive.writestr(name.encode("utf-8", "replace").decode(), content)
    return _bytes(made.getvalue(), rng, "") if kind == 5 else made.getvalue()


def _npy(data: bytes, rng: random.Random, part: str) -> bytes:
    """An array of another type, shape or contents."""
    array = np.load(io.BytesIO(data))
    kinds = ("f2", "f8", "c8", "i1", "U3", "S2", "m8[s]", "?", ">f4", "V4")
    odd = [array.reshape(-1), array[..., None], array[:0], array[:1], array.T, np.zeros((0, 0))]
    changed = rng.choice((*odd, *_ARRAYS[:3], array.astype(rng.choice(kinds), casting="unsafe")))
    file = io.BytesIO()
    np.save(file, changed, allow_pickle=False)
    return _bytes(data, rng, part) if rng.random() < 0.3 else file.getvalue()


def _parquet(data: bytes, rng: random.Random, _: str) -> bytes:
    """A table with a column of another name or type, or without one."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(io.BytesIO(data))
    rows = table.to_pylist()
    names = table.column_names
    name = rng.choice(names)
    kind = rng.randrange(5)
    if kind == 0:
        table = table.drop_columns([name])
    elif kind == 1:
        texts = [s for s in STRANGE if isinstance(s, str) and s.isprintable()]
        table = table.rename_columns([rng.choice(texts) if n == name else n for n in names])
    elif kind == 2:
        return _bytes(data, rng, "")
    else:
        odd = (
            None,
            1,
            1.5,
            "x",
            b"\x80\x04N.",
            [1],
            {"a": 1},
            True,
            float("nan"),
            "[" * 5000,
            "{",
            -1,
        )
        column = pa.array([rng.choice(odd)] * len(rows))
        meta = table.schema.field(name).metadata if rng.random() < 0.7 else {b"encoding": b"json"}
        at = names.index(name)
        table = table.set_column(at, pa.field(name, column.type, metadata=meta), column)
    file = io.BytesIO()
    pq.write_table(table, file)
    return file.getvalue()


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
    waiting = [(tree, not part)] if isinstance(tree, (dict, list)) else []
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
        return _strange(rng, for_json)
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
        node[key] = _strange(rng, for_json)
    return tree


def _strange(rng: random.Random, for_json: bool) -> Any:
    value = rng.choice(STRANGE)
    while for_json and (
        isinstance(value, bytes) or (isinstance(value, int) and value >> 14_000 > 0)
    ):
        value = rng.choice(STRANGE)
    # What is put into several places of one tree must not be changed in all of them.
    return json.loads(json.dumps(value)) if isinstance(value, (list, dict)) else value


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


def _msgpack(data: bytes, rng: random.Random, part: str) -> bytes:
    tree = msgpack.unpackb(data, strict_map_key=False)
    packed: bytes = msgpack.packb(_tree(tree, rng, part=part), default=str)
    return packed


#: How files are changed, by how their names end.
_KINDS: tuple[tuple[tuple[str, ...], Callable[[bytes, random.Random, str], bytes]], ...] = (
    ((".json", ".jsonl"), _json),
    ((".msgpck", ".msgpack"), _msgpack),
    ((".yaml", ".yml"), _yaml),
    ((".csv",), _csv),
    ((".py",), _code),
    ((".npz", ".zip", ".whl"), _zip),
    ((".npy",), _npy),
    ((".parquet",), _parquet),
)
