"""The pickle machine against Python's own, and against bytes that no one wrote on purpose."""

import collections
import datetime
import pickle
import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from rllib_compat.errors import CorruptCheckpointError
from rllib_compat.formats import load_pickle, looks_like_pickle
from rllib_compat.neutral import Budget
from tests.legacy.cases import MUSEUM
from tests.marks import examples
from tests.unit.pickles.assembler import same

PROTOCOLS = st.integers(0, pickle.HIGHEST_PROTOCOL)
SMALL = Budget(bytes=1 << 26, copies=1 << 24, opcodes=100_000, memo=100_000, elements=1 << 20)

keys = st.one_of(
    st.text(max_size=10),
    st.binary(max_size=10),
    st.integers(),
    st.booleans(),
    st.none(),
    st.floats(allow_nan=False),
    st.tuples(st.text(max_size=3), st.integers()),
    st.frozensets(st.integers(), max_size=3),
)
numbers = st.one_of(
    npst.integer_dtypes(endianness="?"),
    npst.unsigned_integer_dtypes(endianness="?"),
    npst.floating_dtypes(endianness="?"),
    npst.complex_number_dtypes(endianness="?"),
    npst.boolean_dtypes(),
    npst.datetime64_dtypes(endianness="?"),
    npst.timedelta64_dtypes(endianness="?"),
    npst.byte_string_dtypes(endianness="?", max_len=5),
    npst.unicode_string_dtypes(endianness="?", max_len=5),
    npst.array_dtypes(max_size=3),
)
shapes = npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)


@st.composite
def arrays(draw):
    array = draw(npst.arrays(draw(numbers), draw(shapes)))
    layout = draw(st.sampled_from(["C", "F", "transposed", "strided"]))
    if layout == "transposed":
        return array.T
    if layout == "strided" and array.ndim:
        return array[::-1]
    return np.array(array, order="F") if layout == "F" else array


leaves = st.one_of(
    keys,
    st.complex_numbers(),
    st.binary().map(bytearray),
    st.integers(-(2**70), 2**70),
    st.integers(0, 300).map(lambda bits: -(1 << 8 * bits)),
    st.datetimes(),
    st.dates(),
    st.times(),
    st.timedeltas(),
    st.datetimes(timezones=st.just(datetime.timezone.utc)),
    st.builds(range, st.integers(0, 9), st.integers(0, 99), st.integers(1, 9)),
    st.builds(slice, st.none() | st.integers(), st.integers(), st.none()),
    arrays(),
    arrays().map(lambda array: array.flat[0] if array.size else array.dtype),
)


def extend(children):
    return st.one_of(
        st.lists(children, max_size=4),
        st.lists(children, max_size=4).map(tuple),
        st.dictionaries(keys, children, max_size=4),
        st.dictionaries(keys, children, max_size=4).map(collections.OrderedDict),
        st.sets(keys, max_size=4),
        st.lists(children, max_size=4).map(lambda x: collections.deque(x, 9)),
        st.dictionaries(keys, st.integers(), max_size=4).map(collections.Counter),
        # Every shape of sharing: one object in two places.
        children.map(lambda x: [x, (x, x), {"again": x}]),
        st.lists(children, max_size=4).map(as_objects),
    )


def as_objects(values):
    array = np.empty(len(values), object)
    for i, value in enumerate(values):
        array[i] = [value]
    return array


values = st.recursive(leaves, extend, max_leaves=12)


@settings(max_examples=examples(150), deadline=None, suppress_health_check=list(HealthCheck))
@given(values, PROTOCOLS)
def test_reads_what_python_reads(value, protocol):
    data = pickle.dumps(value, protocol)
    ours = load_pickle(data)
    assert same(ours.value, pickle.loads(data))
    assert ours.size == len(data)
    assert not ours.unknown
    assert protocol < 2 or looks_like_pickle(data)


@settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))
@given(values, PROTOCOLS, st.data())
def test_damage_is_told_and_never_crashes(value, protocol, data):
    sound = pickle.dumps(value, protocol)
    for _ in range(20):
        broken = bytearray(sound)
        for _ in range(data.draw(st.integers(1, 3))):
            broken[data.draw(st.integers(0, len(sound) - 1))] = data.draw(st.integers(0, 255))
        load_or_blame(bytes(broken))


@settings(max_examples=examples(200), deadline=None)
@given(st.binary(max_size=200))
def test_noise_is_told_and_never_crashes(data):
    load_or_blame(data)


@settings(max_examples=examples(100), deadline=None)
@given(st.randoms(use_true_random=False))
def test_random_opcodes_are_told_and_never_crash(rng: random.Random):
    # Opcodes that make values and move them about; noise alone ends at the first byte.
    opcodes = b"N\x88\x89K\x01()]}\x8ftlde\x85\x86\x87aeus\x90\x9102\x94h\x00h\x01q\x00bRo\x81\x92"
    names = [b"cnumpy\ndtype\n", b"ccollections\nOrderedDict\n", b"cnumpy\nndarray\n", b"cx\ny\n"]
    parts = [bytes([rng.choice(opcodes)]) if rng.random() < 0.9 else rng.choice(names)]
    for _ in range(rng.randrange(60)):
        parts.append(bytes([rng.choice(opcodes)]) if rng.random() < 0.9 else rng.choice(names))
    load_or_blame(b"".join(parts) + b".")


def load_or_blame(data):
    try:
        load_pickle(data, budget=replace(SMALL), where="here")
    except CorruptCheckpointError as error:
        blame = error
    else:
        return
    assert blame.where.startswith("here, offset ")
    assert blame.fix


# One brings torch tensors in nested pickles, the other a filter.
REAL = ("0.7.6/a2c-torch-small", "0.8.5/ppo-torch-cont-meanstd")


def real_pickles(case):
    outer = (MUSEUM / case / "checkpoint_2" / "checkpoint-2").read_bytes()
    return [outer, bytes(load_pickle(outer).value["worker"])]


@pytest.mark.parametrize("case", REAL)
def test_a_real_checkpoint_cut_short_is_told(case):
    for data in real_pickles(case):
        # Where it ends in the middle of weights, one place is as good as another.
        for end in [*range(0, len(data), 5), *range(len(data) - 200, len(data))]:
            with pytest.raises(CorruptCheckpointError):
                load_pickle(data[:end])


@pytest.mark.parametrize(("case", "step"), [(REAL[0], 13), (REAL[1], 3)])
@pytest.mark.parametrize("flip", [0x01, 0x80])
def test_a_real_checkpoint_with_a_flipped_byte_is_told_or_read(case, step, flip):
    _, worker = real_pickles(case)
    for position in range(0, len(worker), step):
        broken = bytearray(worker)
        broken[position] ^= flip
        load_or_blame(bytes(broken))
