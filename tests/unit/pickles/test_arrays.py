"""Arrays of numpy: all spellings of honest ones, and none that reaches beyond its bytes."""

import pickle

import numpy as np
import pytest

from rllib_compat.errors import CorruptCheckpointError
from rllib_compat.formats import load_pickle
from rllib_compat.neutral import GlobalRef, StandIn
from tests.unit.pickles.assembler import (
    BUILD,
    DTYPE_F4,
    DTYPE_OBJECT,
    NONE,
    STOP,
    array,
    call,
    items,
    listed,
    mapped,
    named,
    number,
    old_string,
    raw,
    shape,
    text,
)

FOUR = np.array([1, 2, 3, 4], "<f4")
BYTES = FOUR.tobytes()


@pytest.mark.parametrize("core", ["numpy.core.multiarray", "numpy._core.multiarray", "numpy"])
def test_arrays_of_every_numpy_are_read(core):
    loaded = load_pickle(array(DTYPE_F4, shape(2, 2), raw(BYTES), core=core) + STOP)
    np.testing.assert_array_equal(loaded.value, FOUR.reshape(2, 2))
    assert not loaded.unknown
    scalar = load_pickle(call(core, "scalar", DTYPE_F4, raw(BYTES[4:8])) + STOP).value
    assert isinstance(scalar, np.float32)
    assert scalar == 2


@pytest.mark.parametrize(
    "core", ["numpy.core.numeric", "numpy._core.numeric", "ray.cloudpickle.cloudpickle_fast"]
)
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_of_buffers_are_read(core, order):
    name = "_numpy_frombuffer" if "cloudpickle" in core else "_frombuffer"
    made = call(core, name, raw(BYTES), DTYPE_F4, shape(2, 2), text(order))
    np.testing.assert_array_equal(load_pickle(made + STOP).value, FOUR.reshape(2, 2, order=order))


def test_python_2_wrote_its_bytes_as_text():
    data = bytes(range(256)) * 4
    made = array(DTYPE_F4, shape(256), old_string(data))
    assert load_pickle(made + STOP).value.tobytes() == data
    assert load_pickle(old_string(b"w\xe9ights") + STOP).value == "wéights"
    assert load_pickle(rb"S'a\x00\n\'\xe9'" + b"\n" + STOP).value == "a\x00\n'é"
    scalar = call("numpy.core.multiarray", "scalar", DTYPE_F4, old_string(BYTES[:4]))
    assert load_pickle(scalar + STOP).value == 1


def test_fortran_order_is_kept_in_value():
    made = array(DTYPE_F4, shape(2, 2), raw(BYTES), fortran=b"\x88")
    np.testing.assert_array_equal(load_pickle(made + STOP).value, [[1, 3], [2, 4]])


def test_big_endian_is_kept_in_value():
    for protocol in range(6):
        made = load_pickle(pickle.dumps(FOUR.astype(">f4"), protocol)).value
        np.testing.assert_array_equal(made, FOUR)


def test_objects_in_arrays_become_values_and_records():
    made = array(DTYPE_OBJECT, shape(2), listed(text("a"), call("my.env", "State", number(1))))
    loaded = load_pickle(made + STOP)
    assert loaded.value.dtype == object
    assert loaded.value[0] == "a"
    assert isinstance(loaded.value[1], StandIn)
    assert dict(loaded.unknown) == {"my.env.State": 1}


def test_subclasses_of_arrays_become_records():
    made = call("numpy.core.multiarray", "_reconstruct", named("a", "B"), items(), raw(b"b"))
    loaded = load_pickle(made + items(number(1)) + BUILD + STOP)
    assert isinstance(loaded.value, StandIn)
    assert loaded.value.args[0] == GlobalRef("a", "B")
    assert loaded.value.state == (1,)


def test_dtypes_of_other_packages_become_records():
    made = call("numpy", "dtype", text("bfloat16"), number(0), number(1))
    state = items(number(3), text("<"), NONE, NONE, NONE, number(-1), number(-1), number(0))
    assert isinstance(load_pickle(made + state + BUILD + STOP).value, StandIn)


def dtype(code, state):
    return call("numpy", "dtype", text(code), number(0), number(1)) + state + BUILD


def state(order="|", subarray=NONE, names=NONE, fields=NONE, size=-1):
    return items(
        number(3), text(order), subarray, names, fields, number(size), number(1), number(0)
    )


def structured(size, *fields):
    pairs = [(text(n), items(DTYPE_F4, number(offset))) for n, offset in fields]
    names = items(*(text(n) for n, _ in fields))
    return dtype(f"V{size}", state(names=names, fields=mapped(*pairs), size=size))


BROKEN = {
    "too few bytes": array(DTYPE_F4, shape(5), raw(BYTES)),
    "too many bytes": array(DTYPE_F4, shape(3), raw(BYTES)),
    "a size that is not a number": array(DTYPE_F4, items(text("4")), raw(BYTES)),
    "a size that is a float": array(DTYPE_F4, items(b"G@\x10" + bytes(6)), raw(BYTES)),
    "a size that is a bool": array(DTYPE_F4, items(b"\x88"), raw(BYTES[:4])),
    "bytes that are a list": array(DTYPE_F4, shape(1), listed(number(1))),
    "bytes that are objects": array(DTYPE_OBJECT, shape(1), raw(BYTES[:8])),
    "objects that are bytes": array(DTYPE_F4, shape(1), listed(NONE)),
    "too few objects": array(DTYPE_OBJECT, shape(2), listed(NONE)),
    "a dtype that is a text": array(text("f4"), shape(1), raw(BYTES[:4])),
    "a dtype without its state": array(
        call("numpy", "dtype", text("f4")), shape(1), raw(BYTES[:4])
    ),
    "a byte order that is none": dtype("f4", state(order="x")),
    "a field beyond the end": structured(8, ("a", 0), ("b", 6)),
    "a field before the start": structured(8, ("a", -4)),
    "a field that is missing": dtype("V8", state(names=items(text("a")), fields=mapped(), size=8)),
    "a subarray of a text": dtype("V8", state(subarray=items(text("f4"), shape(2)))),
    "a state that is too short": dtype("f4", items(number(3))),
    "axes that are not there": call(
        "numpy._core.numeric", "_frombuffer", raw(BYTES), DTYPE_F4, shape(2, 2), text("K"), shape(7)
    ),
    "an order that is none": call(
        "numpy._core.numeric", "_frombuffer", raw(BYTES), DTYPE_F4, shape(4), text("Z")
    ),
    "a scalar of no bytes": call("numpy", "scalar", DTYPE_F4, raw(b"")),
    "a scalar without a dtype": call("numpy", "scalar", text("f4"), raw(BYTES[:4])),
}


@pytest.mark.parametrize("payload", BROKEN.values(), ids=BROKEN)
def test_an_array_that_contradicts_itself_is_told(payload):
    with pytest.raises(CorruptCheckpointError):
        load_pickle(payload + STOP)


def test_an_integer_for_a_shape_is_one_axis():
    assert load_pickle(array(DTYPE_F4, number(4), raw(BYTES)) + STOP).value.shape == (4,)


def test_structured_arrays_are_read():
    kind = np.dtype([("a", "<f4"), ("b", ">i2", (2,)), ("c", "S3")], align=True)
    value = np.zeros(3, kind)
    value["a"] = 1.5
    for protocol in range(6):
        np.testing.assert_array_equal(load_pickle(pickle.dumps(value, protocol)).value, value)


def test_structured_arrays_of_objects_become_records():
    value = np.zeros(2, [("a", object)])
    assert isinstance(load_pickle(pickle.dumps(value.dtype, 4)).value, StandIn)
