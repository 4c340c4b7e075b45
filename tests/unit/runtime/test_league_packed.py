"""Weights that lie together are the weights."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from rllib_compat.league.packed import Packed, arrays_of, pack, tensors_on

KINDS = st.sampled_from(["f2", "f4", "f8", "i1", "i8", "?"])
WEIGHTS = st.dictionaries(
    st.text(max_size=5),
    KINDS.flatmap(lambda kind: arrays.arrays(kind, arrays.array_shapes(min_dims=0, max_side=9))),
    max_size=6,
)


@given(WEIGHTS)
def test_each_array_comes_out_as_it_was(weights):
    packed = pack(weights)
    assert isinstance(packed, Packed)
    found, tensors = arrays_of(packed), tensors_on(packed)
    assert list(found) == list(weights) == list(tensors)
    for name, array in weights.items():
        for there in (found[name], tensors[name].numpy()):
            assert there.dtype == array.dtype
            assert there.shape == array.shape
            assert there.tobytes() == array.tobytes()


def test_tensors_of_one_dtype_have_one_memory_and_begin_where_torch_is_fast():
    packed = pack({"weight": np.ones((3, 5), np.float32), "bias": np.ones(3, np.float32)})
    tensors = tensors_on(packed)
    assert len({t.untyped_storage().data_ptr() for t in tensors.values()}) == 1
    assert all(t.storage_offset() % 16 == 0 for t in tensors.values())


@pytest.mark.parametrize("other", [{"depth": 3}, {"names": np.array(["a"])}])
def test_what_is_no_number_of_torch_is_left_as_it_is(other):
    given = {"weight": np.ones(3, np.float32), **other}
    assert pack(given) is given
    assert arrays_of(given) is given


def test_arrays_by_themselves_become_tensors_on_their_memory():
    array = np.ones(3, np.float32)
    tensor = tensors_on({"bias": array})["bias"]
    array[0] = 2
    assert torch.equal(tensor, torch.tensor([2.0, 1.0, 1.0]))
