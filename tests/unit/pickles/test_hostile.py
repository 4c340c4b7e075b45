"""Pickles that want code to run. None of it may, whatever the spelling.

Each payload would make a canary file if it were run; the first test proves that they are live.
"""

import base64
import os
import pickle
import sys

import pytest

from rllib_compat.errors import CorruptCheckpointError
from rllib_compat.formats import load_pickle, load_torch
from rllib_compat.neutral import GlobalRef, StandIn
from tests.unit.pickles.assembler import (
    BUILD,
    CALLS,
    DTYPE_F4,
    DUP,
    EMPTY_TUPLE,
    MARK,
    NONE,
    POP,
    REDUCE,
    STOP,
    array,
    call,
    get,
    items,
    listed,
    mapped,
    named,
    number,
    put,
    raw,
    shape,
    stack_named,
    text,
)
from tests.unit.pickles.gadgets import GADGETS


@pytest.fixture
def canary(tmp_path):
    return tmp_path / "canary"


def read(data, canary):
    """Loads hostile bytes; nothing may be made on disk, nothing imported."""
    modules = set(sys.modules)
    try:
        loaded = load_pickle(data, where="hostile")
    except CorruptCheckpointError:
        loaded = None
    assert not canary.exists()
    # Python itself imports the codecs of text on first use.
    new = set(sys.modules) - modules
    assert not {name for name in new if not name.startswith("encodings.")}
    return loaded


def live(python, canary):
    """A call of `exec` or `eval` with code that makes the canary, for a payload's arguments."""
    return python.replace("CANARY", repr(str(canary)))


@pytest.mark.parametrize("how", [how for how in CALLS if how not in ("NEWOBJ", "NEWOBJ_EX")])
def test_the_payloads_of_this_file_are_live(how, canary):
    code = live("open(CANARY, 'w').close()", canary)
    data = CALLS[how]("builtins", "exec", [text(code)]) + STOP
    try:
        pickle.loads(data)
    except Exception:  # after the code has run
        assert how == "as a state setter"
    assert canary.exists()


@pytest.mark.parametrize("how", CALLS)
@pytest.mark.parametrize(
    ("module", "name"),
    GADGETS,
    ids=lambda part: ascii(part)[1:-1],
)
def test_what_is_called_becomes_a_record(module, name, how, canary):
    code = live("open(CANARY, 'w').close()", canary)
    loaded = read(CALLS[how](module, name, [text(code)]) + STOP, canary)
    known = (module, name) in {("builtins", "type"), ("copyreg", "__newobj__")}
    assert loaded is not None
    assert loaded.globals[f"{module}.{name}"] == 1
    assert known or loaded.unknown[f"{module}.{name}"] == 1
    if how == "popped by POP_MARK":
        assert loaded.value is None
    else:
        assert isinstance(loaded.value, StandIn)
        assert loaded.value.ref == GlobalRef(module, name)
        assert loaded.value.args == (code,)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("call_of", [(os.system, "touch"), (eval, "open"), (exec, "import os")])
def test_reduce_methods_do_not_run(protocol, call_of, canary):
    class Evil:
        def __reduce__(self):
            return call_of[0], (f"{call_of[1]} {canary}",)

    loaded = read(pickle.dumps({"weights": [Evil()]}, protocol), canary)
    assert isinstance(loaded.value["weights"][0], StandIn)


@pytest.mark.parametrize("form", ["GLOBAL", "STACK_GLOBAL"])
def test_a_chain_of_resolvers_stays_a_chain_of_records(form, canary):
    spell = named if form == "GLOBAL" else stack_named
    imported = spell("builtins", "__import__") + items(text("os")) + REDUCE
    system = spell("builtins", "getattr") + items(imported, text("system")) + REDUCE
    loaded = read(system + items(text(f"touch {canary}")) + REDUCE + STOP, canary)
    assert loaded.value.qualified == "builtins.getattr"
    assert loaded.value.ref.args[1] == "system"


BROKEN = {
    "names joined at run time": (
        call("builtins", "getattr", text(""), text("join")) + text("system") + b"\x93"
    ),
    "a name of bytes": raw(b"os") + raw(b"system") + b"\x93",
    "a name of a number": number(1) + text("system") + b"\x93",
    "a very long name": named("os", "x" * 5000),
    "a call of a list": listed() + EMPTY_TUPLE + REDUCE,
    "a call of a text": text("os.system") + items(text("true")) + REDUCE,
    "a call of an array": array(DTYPE_F4, shape(0), raw(b"")) + EMPTY_TUPLE + REDUCE,
    "arguments in a list": named("os", "system") + listed(text("true")) + REDUCE,
    "keyword arguments in a list": named("os", "system") + EMPTY_TUPLE + listed() + b"\x92",
    "state for a module": named("sys", "modules") + mapped((text("os"), NONE)) + BUILD,
    "state for a class": named("collections", "OrderedDict") + mapped() + BUILD,
    "state for a list": listed() + mapped((text("append"), NONE)) + BUILD,
    "state for a dict": mapped() + mapped((text("get"), NONE)) + BUILD,
    "state for an array": array(DTYPE_F4, shape(0), raw(b"")) + items(NONE) + BUILD,
    "state for a dtype": DTYPE_F4 + items(NONE) + BUILD,
    "items for sys.modules": named("sys", "modules") + text("os") + NONE + b"s",
    "items for a class": named("collections", "OrderedDict") + text("keys") + NONE + b"s",
    "items for a tuple": EMPTY_TUPLE + number(0) + NONE + b"s",
    "items for a list": listed(NONE) + number(0) + NONE + b"s",
    "items for an array": array(DTYPE_F4, shape(1), raw(b"1234")) + number(0) + NONE + b"s",
    "an append to a dict": mapped() + NONE + b"a",
    "an append to a set": b"\x8f" + NONE + b"a",
    "an append to an array": array(DTYPE_F4, shape(0), raw(b"")) + NONE + b"a",
    "appends to a class": named("collections", "deque") + MARK + NONE + b"e",
    "an element for a list": listed() + MARK + NONE + b"\x90",
    "an element for a dict": mapped() + MARK + NONE + b"\x90",
    "a filter as a key": mapped((call("ray.rllib.utils.filter", "NoFilter"), NONE)),
    "a list as a key": mapped((listed(), NONE)),
    "a list in a key": mapped((items(listed()), NONE)),
    "a dict in a set": b"\x8f" + MARK + mapped() + b"\x90",
    "an array in a frozenset": MARK + array(DTYPE_F4, shape(0), raw(b"")) + b"\x91",
    "a missing memo": get(5),
    "a text memo of no number": b"gx\n",
    "a negative memo": b"g-1\n",
    "an object without its state": listed(call("numpy", "dtype", text("f4"))),
    "an object without its state, in a record": call("a", "B", call("numpy", "dtype", text("f4"))),
    "a buffer from elsewhere": b"\x97",
    "a read-only buffer": b"\x98",
    "an unknown opcode": b"\xff",
    "a protocol to come": b"\x80\x06" + NONE,
    "protocol 255": b"\x80\xff" + NONE,
    "an empty stack": b"",
    "two values": NONE + NONE,
    "a mark that is left": MARK + NONE,
    "a pop of nothing": POP,
    "a pop of no mark": b"1",
    "a dup of nothing": DUP,
    "a pair of one": NONE + b"\x86",
    "a tuple without a mark": NONE + b"t",
    "a pair across a mark": NONE + MARK + NONE + b"\x86",
    "a key without a value": MARK + NONE + b"d",
    "an object of nothing": MARK + b"o",
    "a frame beyond the end": b"\x95" + (1 << 40).to_bytes(8, "little") + NONE,
    "an integer with letters": b"I12x\n",
    "an integer of a million digits": b"I" + b"9" * 1_000_000 + b"\n",
    "a long of two megabytes": b"\x8b" + (1 << 21).to_bytes(4, "little") + bytes(1 << 21),
    "a negative length": b"\x8b\xff\xff\xff\xff",
    "a text of four gigabytes": b"X\xff\xff\xff\xff",
    "bytes of 2**63": b"\x8e" + (1 << 63).to_bytes(8, "little"),
    "a byte array of 2**63": b"\x96" + (1 << 63).to_bytes(8, "little"),
    "text that is no text": b"X\x02\x00\x00\x00\xff\xfe",
    "a string without quotes": b"Sabc\n",
    "a string with half its quotes": b"S'\n",
    "a line without an end": b"Vabc",
}


@pytest.mark.parametrize("payload", BROKEN.values(), ids=BROKEN)
def test_misuse_of_the_machine_is_told(payload):
    with pytest.raises(CorruptCheckpointError) as caught:
        load_pickle(payload + STOP, where="checkpoint-2")
    assert caught.value.where.startswith("checkpoint-2, offset ")
    assert caught.value.fix


def test_a_naive_memo_is_not_fooled(canary):
    # MEMOIZE counts entries, PUT names them: here a text takes the index that held a list.
    data = listed() + put(1) + text("a") + b"\x94" + POP + text("b") + put(1) + POP
    loaded = read(data + get(1) + b"a" + STOP, canary)
    assert loaded.value == ["b"]


def test_extension_codes_are_records(canary):
    for code in (b"\x82\x01", b"\x83\xff\xff", b"\x84\xff\xff\xff\x7f"):
        loaded = read(code + items(text("x")) + REDUCE + STOP, canary)
        assert isinstance(loaded.value, StandIn)
        assert loaded.value.ref.module == "copyreg"


def test_persistent_ids_are_records(canary):
    assert read(b"Psome\tid\n" + STOP, canary).value.args == ("some\tid",)
    assert read(items(text("module"), NONE) + b"Q" + STOP, canary).value.args == (("module", None),)


def test_only_the_first_of_several_pickles_is_read(canary):
    evil = CALLS["GLOBAL REDUCE"]("builtins", "exec", [text(live("open(CANARY,'w')", canary))])
    benign = pickle.dumps({"a": 1})
    loaded = read(benign + evil + STOP, canary)
    assert loaded.value == {"a": 1}
    assert loaded.size == len(benign)
    assert not loaded.unknown


def test_opcodes_between_and_across_frames_are_read_as_python_reads_them(canary):
    framed = b"\x80\x04\x95\x02" + bytes(7) + b"]\x94" + b"K\x01a" + STOP
    assert read(framed, canary).value == pickle.loads(framed) == [1]


def test_pickles_in_bytes_and_in_base64_stay_bytes(canary):
    evil = CALLS["GLOBAL REDUCE"]("builtins", "exec", [text(live("open(CANARY,'w')", canary))])
    inner = evil + STOP
    loaded = read(pickle.dumps([inner, base64.b64encode(inner).decode()]), canary)
    assert loaded.value == [inner, base64.b64encode(inner).decode()]


def test_pickles_inside_of_torch_bytes_do_not_run(canary):
    evil = CALLS["GLOBAL REDUCE"]("builtins", "exec", [text(live("open(CANARY,'w')", canary))])
    stream = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03." + (
        pickle.dumps({"little_endian": True}, 2) + evil + STOP + pickle.dumps([], 2)
    )
    loaded = read(call("torch.storage", "_load_from_bytes", raw(stream)) + STOP, canary)
    assert loaded.value.qualified == "builtins.exec"
    assert loaded.unknown["builtins.exec"] == 1
    assert load_torch(stream).value.qualified == "builtins.exec"
    assert not canary.exists()


def test_torch_bytes_that_hold_torch_bytes_end_early(canary):
    head = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03." + (
        pickle.dumps({"little_endian": True}, 2)
    )
    stream = head + NONE + STOP + pickle.dumps([], 2)
    for _ in range(50):
        inner = call("torch.storage", "_load_from_bytes", raw(stream)) + STOP
        stream = head + inner + pickle.dumps([], 2)
    assert read(inner, canary) is None


def test_random_generators_are_data(canary):
    # A forged position makes a real generator read beyond its memory.
    state = mapped((text("state"), mapped((text("pos"), number(1 << 30)))))
    loaded = read(
        call("numpy.random._pickle", "__randomstate_ctor", text("MT19937")) + state + BUILD + STOP,
        canary,
    )
    assert isinstance(loaded.value, StandIn)
    assert loaded.value.state == {"state": {"pos": 1 << 30}}
    assert not loaded.unknown


def test_functions_by_value_are_records_with_their_state(canary):
    made = call("ray.cloudpickle.cloudpickle", "_make_function", NONE) + put(1)
    setter = call(
        "ray.cloudpickle.cloudpickle_fast",
        "_function_setstate",
        get(1),
        items(mapped(), mapped((text("__name__"), text("f")))),
    )
    loaded = read(made + setter + POP + STOP, canary)
    assert loaded.value.qualified == "ray.cloudpickle.cloudpickle._make_function"
    assert loaded.value.state[1] == {"__name__": "f"}
