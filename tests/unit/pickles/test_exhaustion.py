"""Small files that stand for gigabytes or hours. All must end at once, and in little memory."""

import json
import os
import pickle
import subprocess
import sys
import time

import numpy as np
import pytest

from rllib_compat.errors import BudgetExceededError, CheckpointError, CorruptCheckpointError
from rllib_compat.formats import load_pickle, looks_like_pickle
from rllib_compat.neutral import Budget
from tests.unit.pickles.assembler import (
    DTYPE_F4,
    DTYPE_OBJECT,
    DUP,
    MARK,
    NONE,
    POP,
    STOP,
    array,
    call,
    get,
    items,
    listed,
    long,
    mapped,
    named,
    number,
    put,
    raw,
    shape,
    text,
    torch_file,
)

LAUGHS = text("lol") + b"".join((DUP + b"\x86") for _ in range(64))
SHARED = listed(*[NONE] * 10_000) + put(1) + POP


def nest(opening, closing, levels):
    return opening * levels + NONE + closing * levels


def twins(i):
    """Makes a set of two sets that hold what is on top of the stack."""
    wrapped = MARK + get(i) + b"\x91"
    return put(i) + POP + MARK + get(i) + wrapped + b"\x91"


def many_times(data, times):
    """A list of what `torch.storage._load_from_bytes` makes of the same bytes again and again."""
    load_bytes = named("torch.storage", "_load_from_bytes") + put(2) + POP
    return load_bytes + listed(*[get(2) + data + b"\x85R"] * times)


# What comes out is not said here: only that it comes at once, and is small.
BOMBS = {
    "billion laughs by DUP": LAUGHS,
    "billion laughs as a key": mapped((LAUGHS, NONE)),
    "billion laughs in a set": b"\x8f" + MARK + LAUGHS + b"\x90",
    "billion laughs of lists": listed(NONE)
    + b"".join(put(i) + POP + listed(get(i), get(i)) for i in range(64)),
    "a filter of shared statistics": named("ray.rllib.utils.filter", "MeanStdFilter")
    + items()
    + b"\x81"
    + mapped((text("rs"), b"]" + (DUP + b"\x86") * 64))
    + b"b",
    "tuples of tuples": nest(b"", b"\x85", 200_000),
    "lists of lists": nest(b"]", b"a", 200_000),
    "dicts of dicts": nest(b"}N", b"s", 200_000),
    "stand-ins of stand-ins": named("a", "B") + b")R" * 100_000,
    "states of states": nest(named("a", "B") + b")\x81", b"b", 50_000),
    "marks without an end": MARK * 1_000_000,
    "a bytearray of a number": call("builtins", "bytearray", long(10**12)),
    "a range of 10**18": call("builtins", "range", number(0), long(10**18), number(1)),
    "a list of a range": call(
        "builtins", "set", call("builtins", "range", number(0), number(10**9), number(1))
    ),
    "one list in many sets": SHARED + listed(*[call("builtins", "set", get(1))] * 10_000),
    "one list in many arrays": SHARED
    + listed(*[array(DTYPE_OBJECT, shape(10_000), get(1))] * 10_000),
    "one text in many bytes": text("x" * 1_000_000)
    + put(1)
    + POP
    + listed(*[call("_codecs", "encode", get(1), text("latin1"))] * 10_000),
    "one text in many paths": text("x" * 1_000_000)
    + put(1)
    + POP
    + listed(*[call("pathlib", "PosixPath", get(1))] * 10_000),
    "arrays in arrays": array(DTYPE_OBJECT, shape(0), listed())
    + put(0)
    + b"".join(put(2) + POP + array(DTYPE_OBJECT, shape(1), listed(get(2))) for _ in range(20_000)),
    "an array of 10**12 elements": array(DTYPE_F4, shape(10**6, 10**6), raw(b"1234")),
    "an array of a negative size": array(DTYPE_F4, shape(-1), raw(b"1234")),
    "an array whose size overflows": array(DTYPE_F4, shape(2**32, 2**32), raw(b"")),
    "an empty array of a huge shape": array(DTYPE_F4, shape(0, 2**62), raw(b"")),
    "an array of a thousand axes": array(DTYPE_F4, shape(*[1] * 1000), raw(b"1234")),
    "an array of texts of no length": array(
        call("numpy", "dtype", text("S0"), number(0), number(1))
        + items(number(3), text("|"), NONE, NONE, NONE, number(0), number(1), number(0))
        + b"b",
        shape(10**15),
        raw(b""),
    ),
    "a dtype of gigabytes": call("numpy", "dtype", text("V999999999"), number(0), number(1))
    + items(number(3), text("|"), NONE, NONE, NONE, number(0), number(1), number(0))
    + b"b",
    "keys that all collide": MARK
    + b"".join(long(i * (2**61 - 1)) + NONE for i in range(30_000))
    + b"d",
    # Where a constructor hashes, compares, prints or converts what it is given.
    **{
        f"laughs {place}": bomb
        for place, bomb in {
            "in an encoding": call("_codecs", "encode", text("x"), LAUGHS),
            "in a shape": array(DTYPE_F4, LAUGHS, raw(b"1234")),
            "in a device": call("torch", "device", LAUGHS),
            "in a version": named("packaging.version", "Version")
            + b")\x81"
            + items(number(0), LAUGHS, LAUGHS, NONE, NONE, NONE)
            + b"b",
            "in the name of a field": call("numpy", "dtype", text("V8"), number(0), number(1))
            + items(number(3), text("|"), NONE, items(LAUGHS), mapped(), number(8), NONE, NONE)
            + b"b",
            "in bounds of a space": named("gym.spaces", "MultiDiscrete")
            + b")\x81"
            + mapped((text("nvec"), LAUGHS))
            + b"b",
            "in a path": call("pathlib", "PosixPath", LAUGHS),
            "in a set of sets": b"\x8f"
            + MARK
            + (MARK + text("x") + b"\x91" + b"".join(twins(i) for i in range(0, 128, 2))) * 2
            + b"\x90",
        }.items()
    },
    "bounds that broadcast": named("gym.spaces", "MultiDiscrete")
    + b")\x81"
    + mapped(
        (text("low"), array(DTYPE_F4, shape(1000, 1), raw(bytes(4000)))),
        (text("high"), array(DTYPE_F4, shape(1, 1000), raw(bytes(4000)))),
    )
    + b"b",
    "a product of long sizes": array(DTYPE_F4, shape(*[(1 << 4000)] * 1000), raw(b"")),
    "a memo of 2**32": listed() + b"r\xff\xff\xff\xff" + POP + b"j\xff\xff\xff\xff",
    "a memo of a huge number": listed() + b"p" + b"9" * 4000 + b"\n",
}


@pytest.fixture(scope="module")
def outcomes():
    """Reads all bombs in a process of its own, and tells seconds and growth of memory for each."""
    code = """
import json, resource, time
from rllib_compat.formats.pickles import load
from rllib_compat.errors import CorruptCheckpointError
from tests.unit.pickles.test_exhaustion import BOMBS
told = {}
for name, bomb in BOMBS.items():
    memory, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    try:
        what = type(load(bomb + b".").value).__name__
    except CorruptCheckpointError as error:
        what = type(error).__name__
    seconds = time.process_time() - start
    told[name] = what, seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory
print(json.dumps(told))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_does_not_go_off(name, outcomes):
    _, seconds, kilobytes = outcomes[name]
    assert seconds < 5
    assert kilobytes < 200_000


@pytest.mark.parametrize(
    ("attribute", "bomb"),
    {
        "opcodes": raw(torch_file(pickle.dumps([None] * 50, 2)))
        + put(1)
        + POP
        + many_times(get(1), 100),
        "nested": raw(torch_file(pickle.dumps(None, 2))) + put(1) + POP + many_times(get(1), 1000),
        "made": b"\x8f0" * 10_000 + NONE,
        "memo": NONE + b"\x94" * 2000,
        "depth": nest(b"]", b"a", 2000),
        "elements": SHARED + call("builtins", "set", get(1)),
        "copies": text("x" * 2000)
        + put(1)
        + POP
        + listed(*[call("_codecs", "encode", get(1), text("latin1"))] * 10),
        "bytes": raw(bytes(2000)),
        "collisions": MARK + b"".join(long(1 << 70 + i) for i in range(2000)) + b"\x91",
    }.items(),
)
def test_every_budget_ends_the_work_and_is_named(attribute, bomb):
    budget = Budget(**{attribute: 1000})
    with pytest.raises(BudgetExceededError, match=rf"\(budget: {attribute}\)"):
        load_pickle(bomb + STOP, budget=budget, where="checkpoint-2")
    load_pickle(bomb + STOP, budget=Budget(depth=3000))


def test_a_range_is_no_longer_than_a_list_may_be():
    """It costs nothing to make; whoever goes through it later has no budget."""
    made = call("builtins", "range", number(0), number(2000), number(1)) + STOP
    assert load_pickle(made).value == range(2000)
    with pytest.raises(BudgetExceededError, match="elements"):
        load_pickle(made, budget=Budget(elements=1000))


def test_a_budget_is_shared_by_all_pickles_that_it_is_given_to():
    budget = Budget(copies=10_000)
    data = text("x" * 700) + put(1) + POP
    data += listed(*[call("_codecs", "encode", get(1), text("latin1"))] * 10) + STOP
    load_pickle(data, budget=budget)
    load_pickle(data, budget=budget)
    with pytest.raises(BudgetExceededError):
        load_pickle(data, budget=budget)


def test_a_value_may_be_as_deep_as_the_budget_and_no_deeper():
    load_pickle(nest(b"]", b"a", 399) + STOP)
    with pytest.raises(BudgetExceededError):
        load_pickle(nest(b"]", b"a", 401) + STOP)


def test_depth_counts_the_longest_way_to_a_shared_part():
    # The deep part is met first at the top, and then once more at the bottom of a deep chain.
    deep = nest(b"]", b"a", 300)
    chain = put(1) + POP + listed(get(1), b"]" * 300 + get(1) + b"a" * 300)
    with pytest.raises(BudgetExceededError):
        load_pickle(deep + chain + STOP)


def test_circles_are_read():
    loaded = load_pickle(b"]\x94" + get(0) + b"a" + STOP).value
    assert loaded[0] is loaded
    loaded = load_pickle(
        named("a", "B") + b")\x81" + put(0) + mapped((text("me"), get(0))) + b"b."
    ).value
    assert loaded.state["me"] is loaded


def test_a_large_array_costs_no_copy(tmp_path):
    weights = np.arange(1 << 22, dtype=np.float32)
    path = tmp_path / "checkpoint-1"
    path.write_bytes(pickle.dumps({"w": weights, "blob": bytes(1 << 20)}, 4))
    start = time.perf_counter()
    loaded = load_pickle(path).value
    assert time.perf_counter() - start < 0.2
    assert not loaded["w"].flags.writeable
    assert not loaded["w"].flags.owndata
    assert isinstance(loaded["blob"], memoryview)
    np.testing.assert_array_equal(loaded["w"], weights)


def test_an_empty_file_is_corrupt(tmp_path):
    (tmp_path / "empty").touch()
    with pytest.raises(CorruptCheckpointError, match="ends early") as caught:
        load_pickle(tmp_path / "empty")
    assert caught.value.where == f"{tmp_path / 'empty'}, offset 0 (STOP)"


@pytest.mark.parametrize("name", ["missing", "folder", "pipe"])
def test_what_is_no_file_is_told(tmp_path, name):
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(CheckpointError, match="No such file"):
        load_pickle(tmp_path / name)


@pytest.mark.parametrize(
    "data", [b"", b"\x80", b"{}", b"[1]", b"PK\x03\x04", b"\x89PNG", b"\x80\x09"]
)
def test_other_files_do_not_look_like_pickles(tmp_path, data):
    (tmp_path / "file").write_bytes(data)
    assert not looks_like_pickle(data)
    assert not looks_like_pickle(memoryview(data))
    assert not looks_like_pickle(tmp_path / "file")


@pytest.mark.parametrize("protocol", range(6))
def test_pickles_of_containers_look_like_pickles(tmp_path, protocol):
    for value in ({"a": 1}, [1], (1, 2), {1}):
        data = pickle.dumps(value, protocol)
        (tmp_path / "file").write_bytes(data)
        assert looks_like_pickle(data)
        assert looks_like_pickle(tmp_path / "file")
