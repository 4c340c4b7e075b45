"""Generated values, spaces and checkpoints."""

from __future__ import annotations

from datetime import timedelta, timezone
from pathlib import Path

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from rllib_compat.neutral import (
    Counters,
    Finding,
    GlobalRef,
    LegacyCheckpoint,
    ObservationFilter,
    PolicyState,
    RunningStat,
    Severity,
    Source,
    StandIn,
    Verdict,
    spaces,
)

names = st.text("abcdefghij_0123456789", min_size=1, max_size=8)
text = st.text(max_size=10)
floats = st.floats(allow_nan=False)  # a NaN is not equal to itself
int64s = st.integers(-(1 << 63), (1 << 64) - 1)

simple_dtypes = st.one_of(
    hnp.boolean_dtypes(),
    hnp.integer_dtypes(endianness="?"),
    hnp.unsigned_integer_dtypes(endianness="?"),
    hnp.floating_dtypes(endianness="?"),
    hnp.complex_number_dtypes(endianness="?"),
    hnp.byte_string_dtypes(max_len=5),
    hnp.unicode_string_dtypes(endianness="?", max_len=5),
    hnp.datetime64_dtypes(endianness="?"),
    hnp.timedelta64_dtypes(endianness="?"),
)
# Without gaps between the fields: msgpack_numpy can't read back what it writes of those.
structured_dtypes = st.lists(
    st.tuples(simple_dtypes, hnp.array_shapes(min_dims=0, max_dims=2, max_side=2)),
    min_size=1,
    max_size=3,
).map(lambda parts: np.dtype([(f"f{i}", dtype, shape) for i, (dtype, shape) in enumerate(parts)]))
dtypes = simple_dtypes | structured_dtypes


@st.composite
def arrays(draw, dtype=dtypes):
    """Arrays of every fixed type: 0-d, empty, Fortran order, with gaps, read-only."""
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3))
    dtype = draw(dtype) if isinstance(dtype, st.SearchStrategy) else np.dtype(dtype)
    # Any bytes are a value of it; making them one by one is slow.
    size = int(np.prod(shape, dtype=int)) * dtype.itemsize
    if dtype.kind in "US" or dtype.names:
        array = np.zeros(shape, dtype)
    else:
        data = draw(st.binary(min_size=size, max_size=size))
        array = np.ndarray(shape, dtype, bytearray(data))
        if dtype.kind == "b":
            array = np.asarray(array.view(np.uint8) % 2 == 1)
    layout = draw(st.sampled_from(["C", "F", "gaps", "read-only"]))
    if layout == "F":
        array = np.asfortranarray(array) if array.ndim else array
    elif layout == "gaps":
        array = np.repeat(array, 2, axis=-1)[..., ::2] if array.ndim else array
    elif layout == "read-only":
        array.flags.writeable = False
    return array


scalars = st.one_of(
    st.none(),
    st.booleans(),
    int64s,
    floats,
    text,
    st.binary(max_size=10),
    st.complex_numbers(allow_nan=False),
)
keys = st.one_of(
    st.none(),
    st.booleans(),
    int64s,
    floats,
    text,
    st.binary(max_size=5).filter(lambda key: key not in (b"nd", b"complex")),
)


def nested(leaves, keys):
    """Lists, tuples and dicts of `leaves`."""
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.lists(inner, max_size=4),
            st.lists(inner, max_size=4).map(tuple),
            st.dictionaries(keys, inner, max_size=4),
        ),
        max_leaves=10,
    )


#: Everything that the codec takes.
packable = nested(scalars | arrays(), keys)


weight_arrays = arrays(dtype="float32")

boxes = st.builds(
    spaces.box,
    st.floats(-10, 0, width=32),
    st.floats(0, 10, width=32) | st.just(np.inf),
    hnp.array_shapes(min_dims=0, max_dims=3, max_side=3),
    st.sampled_from(["float32", "float64"]),
)
flat_spaces = st.one_of(
    boxes,
    st.builds(spaces.Discrete, st.integers(1, 9), st.integers(-3, 3)),
    st.builds(spaces.MultiDiscrete, st.lists(st.integers(1, 5), min_size=1, max_size=3).map(tuple)),
    st.builds(spaces.MultiBinary, hnp.array_shapes(max_dims=2, max_side=3)),
)
any_space = st.recursive(
    flat_spaces,
    lambda inner: st.one_of(
        st.builds(spaces.TupleSpace, st.lists(inner, min_size=1, max_size=3).map(tuple)),
        st.builds(spaces.DictSpace, st.dictionaries(names, inner, min_size=1, max_size=3)),
    ),
    max_leaves=5,
)

global_refs = st.builds(GlobalRef, names, names)
stand_ins = st.builds(
    StandIn,
    global_refs,
    st.lists(text | int64s, max_size=2).map(tuple),
    st.dictionaries(names, text, max_size=2),
    st.none() | st.dictionaries(names, int64s, max_size=2),
    st.lists(text, max_size=2),
    st.lists(st.tuples(text, int64s), max_size=2),
)
hashables = st.one_of(int64s, text, st.tuples(text, int64s), global_refs)

_whole = st.integers(-50, 50)
#: What configs hold of the standard library and of numpy beside numbers and text.
standard_values = st.one_of(
    st.datetimes(timezones=st.sampled_from([None, timezone.utc, timezone(timedelta(hours=-3))])),
    st.dates(),
    st.times(),
    st.timedeltas(),
    st.decimals(allow_nan=False),
    st.uuids(),
    st.builds(range, _whole, _whole, st.integers(1, 5)),
    st.builds(slice, st.none() | _whole, _whole, st.none() | _whole),
    (simple_dtypes | structured_dtypes).filter(lambda dtype: dtype.itemsize > 0),
)

#: Everything that a reader may put into a neutral state's free fields.
neutral = nested(
    st.one_of(
        scalars,
        arrays(),
        st.integers(min_value=1 << 64, max_value=1 << 200),
        st.sets(hashables, max_size=3),
        st.frozensets(hashables, max_size=3),
        global_refs,
        stand_ins,
        any_space,
        standard_values,
    ),
    keys | st.tuples(text, int64s) | st.just("$"),
)
neutral_dicts = st.dictionaries(names, neutral, max_size=3)

running_stats = arrays(dtype="float64").flatmap(
    lambda mean: st.builds(
        RunningStat,
        st.integers(0, 99),
        st.just(mean),
        st.just(mean.copy()),
    )
)
filters = st.builds(
    ObservationFilter,
    st.sampled_from(["NoFilter", "MeanStdFilter", "ConcurrentMeanStdFilter"]),
    st.booleans(),
    st.booleans(),
    st.none() | floats,
    st.lists(running_stats, max_size=2).map(tuple),
)
weights = st.one_of(
    st.dictionaries(names, weight_arrays, max_size=3),
    st.lists(weight_arrays, max_size=3),
    hnp.arrays(np.float32, st.integers(0, 5), elements=st.floats(-1, 1, width=32)),
)
torch_optimizers = st.lists(
    st.dictionaries(
        st.integers(0, 3), st.fixed_dictionaries({"step": floats, "exp_avg": weight_arrays})
    ).map(lambda state: {"state": state, "param_groups": [{"lr": 0.1, "params": list(state)}]}),
    max_size=2,
)


def _policies(policy_ids):
    return st.fixed_dictionaries(
        {
            policy_id: st.builds(
                PolicyState,
                st.just(policy_id),
                weights,
                optimizer=torch_optimizers | neutral,
                observation_space=st.none() | any_space,
                action_space=st.none() | any_space,
                observation_filter=st.none() | filters,
                config=neutral_dicts,
                policy_class=st.none() | names,
                kl_coeff=st.none() | floats,
                global_timestep=st.none() | st.integers(0, 1 << 40),
                exploration=neutral,
                learner_weights=st.none() | st.dictionaries(names, weight_arrays, max_size=2),
                extra=neutral_dicts,
            )
            for policy_id in policy_ids
        }
    )


counts = st.none() | st.integers(0, 1 << 40)
checkpoints = st.builds(
    LegacyCheckpoint,
    st.builds(
        Source,
        names.map(Path),
        st.sampled_from(["0.1", "1.0", "1.1", "1.2"]),
        st.none() | names,
        st.dictionaries(names, names, max_size=2),
    ),
    algorithm=st.none() | names,
    config=neutral_dicts,
    config_is_complete=st.booleans(),
    policies=st.sets(names, max_size=2).flatmap(_policies),
    policy_mapping_fn=st.none() | stand_ins,
    policies_to_train=st.none() | stand_ins | st.lists(names, max_size=2),
    counters=st.builds(
        Counters, counts, counts, counts, counts, counts, st.none() | floats, neutral_dicts
    ),
    findings=st.lists(
        st.builds(
            Finding, names, st.sampled_from(Severity), st.sampled_from(Verdict), text, text, text
        ),
        max_size=2,
    ).map(tuple),
    stand_ins=st.dictionaries(names, st.integers(1, 9), max_size=2),
    extra=neutral_dicts,
)
