"""The msgpack codec: what is refused, and how damage is told."""

from __future__ import annotations

import enum
import io
import pickle
import struct
import tracemalloc
from collections import OrderedDict, defaultdict, namedtuple

import msgpack
import msgpack_numpy
import numpy as np
import pytest

from rllib_compat.errors import BudgetExceededError, CheckpointError, CorruptCheckpointError
from rllib_compat.formats import pack, unpack
from rllib_compat.formats.msgpack import codec
from rllib_compat.formats.msgpack.codec import MAX_DEPTH, canonical, pack_to
from rllib_compat.ray_versions import checkpoints
from tests.legacy.cases import MUSEUM

FILES = sorted(MUSEUM.rglob("*.msgpck"))


class Bomb:
    """Fails the test when it is unpickled."""

    def __repr__(self):  # the same in every process that collects the tests
        return "Bomb()"

    def __reduce__(self):
        return (pytest.fail, ("a pickle was loaded",))


class Level(str, enum.Enum):
    LOW = "low"


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.relative_to(MUSEUM).as_posix())
def test_files_of_ray_come_out_as_ray_reads_them_and_go_back_byte_for_byte(file):
    value = unpack(file)
    expected = msgpack_numpy.unpackb(file.read_bytes(), strict_map_key=False)
    np.testing.assert_equal(value, expected)
    assert pack(value) == file.read_bytes()


def test_arrays_can_be_changed_in_place():
    array = unpack(pack({"w": np.zeros(3, np.float32)}))["w"]
    array += 1
    assert array.tolist() == [1, 1, 1]


def test_a_view_on_someone_elses_memory_does_not_follow_its_changes():
    data = bytearray(pack(np.zeros(3)))
    array = unpack(memoryview(data))
    data[-1] = 1
    assert array.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ((1, (2,)), [1, [2]]),
        (OrderedDict(a=1), {"a": 1}),
        (defaultdict(int, {1: 2}), {1: 2}),
        (namedtuple("Point", "x y")(1, 2), [1, 2]),
        (np.float64(1.5), 1.5),
        (np.str_("a"), "a"),
        (np.bytes_(b"a"), b"a"),
        (Level.LOW, "low"),
        (bytearray(b"a"), b"a"),
        (memoryview(b"a"), b"a"),
        ({np.int64(3): 1, np.float32(0.5): 2, np.bool_(True): 3}, {3: 1, 0.5: 2, True: 3}),
    ],
)
def test_what_msgpack_has_no_type_for_becomes_the_documented_one(value, expected):
    result = unpack(pack(value))
    assert result == expected == canonical(value)
    assert type(result) is type(expected)


@pytest.mark.parametrize(
    ("value", "where"),
    [
        ({"a": [1, {2}]}, "$.a[1]"),
        ({"a": {"b": 1 << 64}}, "$.a.b"),
        ([-(1 << 63) - 1], "$[0]"),
        ({"w": np.array([None])}, "$.w"),
        ({"w": np.zeros(1, [("a", "O")])}, "$.w"),
        ([(0, Bomb())], "$[0][1]"),
        ({"a": {(1, 2): 3}}, "$.a"),
        ({b"nd": 1}, "$"),
        ({"a": {b"complex": 1}}, "$.a"),
        ({"a": "\ud800"}, "$.a"),
        (np.array(["a"], dtype=np.dtypes.StringDType()), "$"),
    ],
    ids=repr,
)
def test_what_can_not_be_written_is_named_by_its_path(value, where):
    with pytest.raises(CheckpointError, match="cannot store") as caught:
        pack(value)
    assert caught.value.where == where


def test_a_list_that_holds_itself_is_told_and_does_not_crash():
    value = []
    value.append(value)
    with pytest.raises(BudgetExceededError):
        pack(value)


@pytest.mark.parametrize(
    "array", [np.array([Bomb()]), np.array([[1, None]]), np.array(None)], ids=["1d", "2d", "0d"]
)
def test_an_object_array_is_refused_and_its_pickle_never_loaded(array):
    record = msgpack_numpy.packb({"a": array})
    with pytest.raises(CorruptCheckpointError, match="pickle"):
        unpack(record)


def test_a_pickle_is_not_loaded_either_where_the_kind_is_left_out_or_wrong():
    for kind in ({}, {b"kind": b"V"}, {b"kind": "O"}, {b"kind": b""}):
        for descr in ("|O", [["a", "|O"]], "O", "object"):
            record = {b"nd": True, b"type": descr, b"shape": [1], b"data": pickle.dumps(Bomb())}
            with pytest.raises(CorruptCheckpointError):
                unpack(msgpack.packb({**record, **kind}))


def _array(**parts):
    record = {b"nd": True, b"type": "<f4", b"kind": b"", b"shape": [2], b"data": bytes(8)}
    return msgpack.packb({**record, **{k.encode(): v for k, v in parts.items()}})


@pytest.mark.parametrize(
    "packed",
    [
        _array(shape=[3]),
        _array(shape=[1]),
        _array(shape=[-2]),
        _array(shape=[1 << 62, 1 << 62]),
        _array(shape=[2, 1 << 40, 0], data=b"x"),
        _array(shape="2"),
        _array(shape=[2.0]),
        _array(shape=[1] * 70, data=bytes(4)),
        _array(data="text"),
        _array(data=None),
        _array(nd=1),
        _array(type="f4,f4"),
        _array(type="<f3"),
        _array(type="float32"),
        _array(type="|S0", shape=[1 << 40], data=b""),
        _array(type=[["a", "<f4"], ["a", "<f4"]], shape=[1]),
        _array(type=[["a"]]),
        _array(type=[["a", "<f4", [1 << 40, 1 << 40]]]),
        _array(type=[[1, "<f4"]], shape=[2]),
        _array(type=None),
        _array(type=msgpack.Timestamp(1)),
        msgpack.packb({b"nd": True}),
        msgpack.packb({b"nd": False, b"data": b""}),
        msgpack.packb({b"complex": True}),
        msgpack.packb({b"complex": True, b"data": "os.system"}),
        msgpack.packb({b"complex": True, b"data": [1]}),
        msgpack.packb(msgpack.ExtType(42, b"payload")),
        b"",
        b"\xc1",
        b"\x01\x02",
        b"\x81\x90\x01",
        b"\xa1\xff",
        b"\xdd\xff\xff\xff\xff",
        b"\xdf\xff\xff\xff\xff",
        b"\xc6\xff\xff\xff\xff",
        b"\xdb\xff\xff\xff\xff",
    ],
)
def test_damage_is_one_kind_of_error_and_says_where(packed):
    with pytest.raises(CorruptCheckpointError) as caught:
        unpack(packed, where="policy_state.msgpck")
    assert caught.value.where == "policy_state.msgpck"


def test_every_truncation_of_a_file_is_told():
    packed = pack({"w": np.arange(3.0), "list": [1, "a", None, {"b": 2j}]})
    for size in range(len(packed)):
        with pytest.raises(CorruptCheckpointError):
            unpack(packed[:size])


def test_the_file_is_named_where_nothing_else_is_given(tmp_path):
    file = tmp_path / "algorithm_state.msgpck"
    file.write_bytes(b"\xc1")
    with pytest.raises(CorruptCheckpointError) as caught:
        unpack(file)
    assert caught.value.where == str(file)


def test_nesting_is_bounded_on_both_sides():
    value = 1
    for _ in range(MAX_DEPTH - 1):
        value = [value]
    assert unpack(pack(value)) == value
    for depth in (MAX_DEPTH + 1, 900, 5_000, 1_000_000):
        with pytest.raises(BudgetExceededError):
            unpack(b"\x91" * depth + b"\x01")


def test_nested_lists_that_declare_more_than_there_is_take_no_memory():
    # Each of the lists declares as many elements as the file has bytes; `msgpack.unpackb` would
    # take 900 × 100 MB before it notices that the file ends.
    size = 12_500_000
    packed = (b"\xdd" + struct.pack(">I", size)) * 900 + bytes(size)
    with pytest.raises(CorruptCheckpointError):
        unpack(packed)


def test_a_stream_gets_the_same_bytes_as_a_file(tmp_path):
    value = {"w": np.arange(3.0)}
    stream, file = io.BytesIO(), tmp_path / "state"
    pack_to(value, stream)
    pack_to(value, file)
    assert stream.getvalue() == file.read_bytes() == pack(value)


def test_a_refused_value_leaves_no_file(tmp_path):
    with pytest.raises(CheckpointError):
        pack_to({"a": {1}}, tmp_path / "state")
    assert not (tmp_path / "state").exists()


def test_a_patched_msgpack_changes_nothing_and_unpickles_nothing():
    array = np.arange(6, dtype=">i4").reshape(2, 3)
    before = pack({"a": array, 1: None})
    with checkpoints.unpatched_msgpack():
        msgpack_numpy.patch()
        assert pack({"a": array, 1: None}) == before
        np.testing.assert_array_equal(unpack(before)["a"], array)
        bomb = msgpack_numpy.packb(np.array([{"a": 1}], dtype=object))
        with pytest.raises(CorruptCheckpointError):
            unpack(bomb)


@pytest.mark.parametrize(
    "value",
    [
        np.arange(12.0).reshape(3, 4),
        {"a": [np.zeros(3), {"b": np.ones((2, 2), np.float32)}], "c": (np.arange(40), "text")},
        {"turned": np.arange(12.0).reshape(3, 4).T, "dates": np.zeros(4, "datetime64[s]")},
        {"twice": [np.arange(9.0)] * 2, 1: None, "none": np.zeros((0, 3))},
    ],
)
def test_a_file_of_large_arrays_is_what_packing_makes_at_once(value, tmp_path, monkeypatch):
    monkeypatch.setattr(codec, "_LARGE", 24)
    pack_to(value, tmp_path / "state")
    written = (tmp_path / "state").read_bytes()
    np.testing.assert_equal(unpack(written), canonical(value))
    monkeypatch.undo()
    # Lengths below 64 KB have shorter forms, which msgpack itself takes.
    assert pack(unpack(written)) == pack(value)


def test_a_large_array_is_written_as_msgpack_itself_writes_it():
    value = {"before": 1, "w": np.arange(1 << 18, dtype=np.float64), "after": [2]}
    stream = io.BytesIO()
    pack_to(value, stream)
    assert stream.getvalue() == pack(value)


def test_large_parts_of_a_file_are_not_copied(tmp_path):
    array, raw = np.arange(1 << 19, dtype=np.float32), bytes(1 << 20)
    value = {"a": array, "b": [raw, {"c": raw, "d": array[:5]}], "e": raw}
    (tmp_path / "state").write_bytes(pack(value))

    tracemalloc.start()
    found = unpack(tmp_path / "state")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    np.testing.assert_array_equal(found["a"], array)
    found["a"][0] = 1.0
    assert (found["b"][0], found["b"][1]["c"], found["e"]) == (raw, raw, raw)
    assert {type(part) for part in (found["b"][0], found["b"][1]["c"], found["e"])} == {bytes}
    assert peak < 3 * len(raw) + array.nbytes + len(pack(value))
    (tmp_path / "state").write_bytes(pack(raw))
    assert unpack(tmp_path / "state") == raw
