"""The codec against its law, and against msgpack_numpy in both directions."""

from __future__ import annotations

from contextlib import suppress

import msgpack_numpy
import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from rllib_compat.errors import CorruptCheckpointError
from rllib_compat.formats import pack, unpack
from rllib_compat.formats.msgpack.codec import canonical
from tests.properties import strategies
from tests.properties.same import assert_same


def _ours_alone(value):
    """Whether msgpack_numpy can't write `value`, or not read it back."""
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "Mm" or any(
            _ours_alone(np.empty(0, part[0].base)) for part in (value.dtype.fields or {}).values()
        )
    if isinstance(value, dict):
        return any(map(_ours_alone, value.values()))
    return isinstance(value, (list, tuple)) and any(map(_ours_alone, value))


@given(strategies.packable)
def test_nothing_is_lost_or_changed(value):
    assert_same(unpack(pack(value)), canonical(value))


@given(strategies.packable)
def test_what_was_read_can_be_written_again_to_the_same_bytes(value):
    packed = pack(value)
    assert pack(unpack(packed)) == packed


@given(strategies.packable.filter(lambda value: not _ours_alone(value)))
def test_the_bytes_are_those_of_msgpack_numpy(value):
    assert pack(value) == msgpack_numpy.packb(value)


@given(
    strategies.nested(
        strategies.scalars | strategies.arrays(strategies.simple_dtypes), strategies.keys
    )
)
@example(np.array(["2020-01-01"], "M8[s]"))
def test_msgpack_numpy_reads_what_we_write(value):
    assert_same(msgpack_numpy.unpackb(pack(value), strict_map_key=False), canonical(value))


@given(strategies.arrays(strategies.simple_dtypes).filter(lambda a: a.dtype.kind not in "MmUS"))
def test_numpy_scalars_keep_their_type(array):
    for value in array.ravel()[:2]:
        assert_same(unpack(pack([value])), [canonical(value)])


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_told_to_be_damaged(data):
    with suppress(CorruptCheckpointError):
        unpack(data)


@given(strategies.packable, st.data())
def test_one_wrong_byte_is_read_or_told_to_be_damaged(value, data):
    packed = bytearray(pack(value))
    packed[data.draw(st.integers(0, len(packed) - 1))] = data.draw(st.integers(0, 255))
    with suppress(CorruptCheckpointError):
        unpack(bytes(packed))
