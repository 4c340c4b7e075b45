"""`inspect --globals`: every name in a checkpoint's files, with its verdict and offset."""

from __future__ import annotations

import io
import json
import os
import pickle
import pickletools
import subprocess
import sys
import zipfile

import msgpack
import pytest

from rllib_compat.errors import BudgetExceededError, UnknownLayoutError
from rllib_compat.formats import Handling, list_globals
from rllib_compat.neutral import Budget
from tests.legacy.cases import all_cases
from tests.security import payloads
from tests.security.payloads import Call, dumps

CALLED = "stranger_code.touch"
SMALL = 400_000


@pytest.fixture
def tmp_path(tmp_path):
    """A folder so deep that no other test's params are taken for those of its checkpoint."""
    deep = tmp_path / "a" / "b" / "c" / "d"
    deep.mkdir(parents=True)
    return deep


def rows(path):
    return {
        (file.file, *name.inside, name.name): name
        for file in list_globals(path)
        for name in file.names
    }


class Finder(pickle.Unpickler):
    """Python's own, with everything that a pickle names replaced by what swallows all."""

    def __init__(self, data):
        super().__init__(io.BytesIO(data))
        self.found = []

    def find_class(self, module, name):
        self.found.append(f"{module}.{name}")
        return Anything

    def persistent_load(self, pid):
        return Anything()


class Anything(dict):
    def __new__(cls, *args, **kwargs):
        return super().__new__(cls)

    def __init__(self, *args, **kwargs):
        super().__init__()

    def __setstate__(self, state):
        pass

    def __call__(self, *args, **kwargs):
        return Anything()

    def append(self, item):
        pass

    def extend(self, items):
        pass

    def __hash__(self):
        return id(self)


def test_the_names_of_real_files_are_those_that_python_would_look_up():
    """Of all plain pickles of the museum; each offset is an opcode that names something."""
    compared = 0
    for case in all_cases()[::16]:
        for file in list_globals(case.path):
            path = case.path / file.file
            if path.suffix == ".pt" or path.stat().st_size > SMALL or "msgp" in path.suffix:
                continue
            data = path.read_bytes()
            finder = Finder(data)
            finder.load()
            own = [name for name in file.names if not name.inside]
            assert {name.name for name in own} == set(finder.found), path
            assert sum(name.times for name in own) == len(finder.found), path
            naming = {at for op, _, at in pickletools.genops(data) if "GLOBAL" in op.name}
            assert {name.offset for name in own} <= naming, path
            for inner in (name for name in file.names if name.inside):
                start = int(inner.inside[-1].removeprefix("the pickle at "))
                assert start < inner.offset < len(data), path
                assert data[inner.offset : inner.offset + 1] in (b"c", b"\x93"), path
            compared += 1
    assert compared > 40


@pytest.mark.parametrize("layout", payloads.LAYOUTS)
def test_a_call_is_listed_wherever_it_stands(layout, tmp_path):
    build, places = payloads.LAYOUTS[layout]
    for place in places:
        path = build(tmp_path / place.replace(" ", "-"), call=place)
        found = [n for file in list_globals(path) for n in file.names if n.name == CALLED]
        assert found, place
        for name in found:
            expected = Handling.REFUSED if layout == "1.x msgpack" else Handling.INERT
            assert name.handling is expected
            # Protocol 2 has bytes as escaped text, in which nothing lies as it is.
            assert name.offset is not None or name.inside


def test_the_offset_is_that_of_the_file_even_inside_of_pickles(tmp_path):
    innermost = dumps({"x": Call(), "y": 1}, 4)
    data = dumps({"worker": dumps({"inner": innermost, "more": "x" * 70_000}, 4)}, 4)
    (tmp_path / "checkpoint-1").write_bytes(data)
    ((_, name),) = rows(tmp_path).items()
    assert data[name.offset :].startswith(b"cstranger_code\ntouch\n")
    start = data.index(innermost)
    assert name.inside[1:] == (f"the pickle at {start}",)
    assert len(name.inside) == 2


def test_a_pickle_that_nothing_opens_is_listed_too(tmp_path):
    old = payloads.v1(tmp_path / "old")
    (old / "notes.bin").write_bytes(dumps([Call()]))
    (old / "policies" / "hidden.pkl").write_bytes(dumps({"a": dumps(Call(), 0)}, 2))
    found = {row[0] for row, name in rows(old).items() if name.name == CALLED}
    assert found == {"notes.bin", "policies/hidden.pkl"}


@pytest.mark.parametrize("form", ["zip", "tar-style"])
def test_files_of_torch_are_listed(form, tmp_path):
    make = payloads.torch_zip if form == "zip" else payloads.torch_tar_style
    data = make(dumps({"w": Call()}))
    (tmp_path / "module_state.pt").write_bytes(data)
    ((_, name),) = rows(tmp_path).items()
    assert data[name.offset :].startswith(b"cstranger_code\ntouch\n")


def test_a_damaged_pickle_is_listed_up_to_its_end_and_said_to_be_refused(tmp_path):
    data = dumps([Call(), dumps(Call())], 4)[:-1] + b"\xffx."
    (tmp_path / "checkpoint-1").write_bytes(data)
    names = list_globals(tmp_path)[0].names
    assert [name.handling.value for name in names] == ["inert", "refused", "inert"]
    assert "opcode 0xff" in names[1].why


def test_an_array_of_objects_in_msgpack_is_refused_with_its_names(tmp_path):
    objects = {b"nd": True, b"type": b"|O", b"kind": b"O", b"shape": [1], b"data": dumps([Call()])}
    packed = msgpack.packb({"a": objects, "b": dumps(Call())})
    (tmp_path / "algorithm_state.msgpck").write_bytes(packed)
    first, second = list_globals(tmp_path)[0].names
    assert (first.handling, second.handling) == (Handling.REFUSED, Handling.INERT)
    assert "never read" in first.why
    for name in (first, second):
        assert packed[name.offset :].startswith(b"cstranger_code\ntouch\n")


def test_links_and_pipes_are_told_and_not_opened(tmp_path):
    old = payloads.v1(tmp_path / "old")
    (old / "link.pkl").symlink_to("/etc/passwd")
    os.mkfifo(old / "pipe.pkl")
    found = rows(old)
    assert "link" in found["link.pkl", ""].why
    assert "not opened" in found["pipe.pkl", ""].why


def test_a_budget_ends_it(tmp_path):
    (tmp_path / "checkpoint-1").write_bytes(b"\x80\x02](" + b"ca\nb\n" * 400_000 + b"e.")
    with pytest.raises(BudgetExceededError):
        list_globals(tmp_path)
    (tmp_path / "checkpoint-1").write_bytes(dumps([dumps([i], 4) for i in range(2000)], 4))
    with pytest.raises(BudgetExceededError):
        list_globals(tmp_path, Budget(nested=1000))


def test_there_has_to_be_something(tmp_path):
    with pytest.raises(UnknownLayoutError):
        list_globals(tmp_path / "nothing")


def test_the_command_shows_a_table_and_json(tmp_path, run):
    old = payloads.v0_1(tmp_path / "old", call="outer")
    code, out, _ = run("inspect", "--globals", old)
    assert code == 0
    assert CALLED in out
    code, out, _ = run("inspect", "--globals", "--json", old)
    told = json.loads(out)
    assert told["policies"]
    (row,) = [row for row in told["globals"] if row["name"] == CALLED]
    assert row["verdict"] == "inert"
    assert row["file"] == "checkpoint-1"
    assert old.read_bytes()[row["offset"] :].startswith(b"cstranger_code\ntouch\n")


def test_names_are_told_of_what_can_not_be_read_at_all(tmp_path, run):
    (tmp_path / "checkpoint-1").write_bytes(dumps({"worker": Call()}))
    code, out, err = run("inspect", "--globals", tmp_path)
    assert code == 2
    assert CALLED in out
    assert "error:" in err
    code, out, _ = run("inspect", "--globals", "--json", tmp_path)
    assert code == 2
    assert [row["name"] for row in json.loads(out)["globals"]] == [CALLED]


def test_without_the_option_nothing_of_it_is_printed(tmp_path, run):
    old = payloads.v0_1(tmp_path / "old")
    assert "globals" not in json.loads(run("inspect", "--json", old)[1])


def test_it_needs_neither_ray_nor_torch(tmp_path):
    path = tmp_path / "module_state.pt"
    path.write_bytes(payloads.torch_zip(dumps({"w": Call()})))
    with zipfile.ZipFile(path) as archive:
        assert archive.namelist()
    code = f"""
import sys
from rllib_compat.formats.globals import list_globals
assert list_globals({str(tmp_path)!r})
assert not {{"ray", "torch", "tensorflow", "gym", "stranger_code"}} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
