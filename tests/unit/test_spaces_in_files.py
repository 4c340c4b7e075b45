"""Spaces in Ray's dict form, against Ray's own functions and real files."""

from __future__ import annotations

import base64
import io
import zlib

import gymnasium.spaces as g
import numpy as np
import pytest

from rllib_compat.errors import BudgetExceededError, CorruptCheckpointError
from rllib_compat.formats import unpack
from rllib_compat.formats.array_text import decode_array, encode_array
from rllib_compat.formats.msgpack.codec import canonical
from rllib_compat.formats.spaces import from_ray_dict, to_preprocessed_dict, to_ray_dict
from rllib_compat.neutral import Budget, spaces
from rllib_compat.neutral.spaces import (
    Box,
    DictSpace,
    Discrete,
    MultiBinary,
    MultiDiscrete,
    TupleSpace,
)
from tests.legacy.atari import record_lists
from tests.legacy.cases import MUSEUM

SPACES = [
    g.Box(-1, 1, (3,)),
    g.Box(0, 255, (4, 4, 3), np.uint8),
    g.Box(np.array([-1, -np.inf]), np.array([1, np.inf]), dtype=np.float64),
    g.Box(0, 1, ()),
    g.Discrete(4, start=2),
    g.MultiDiscrete([2, 3]),
    g.MultiBinary(4),
    g.MultiBinary([2, 3]),
    g.Tuple([g.Discrete(2), g.Box(0, 1, (2,))]),
    g.Dict(b=g.Discrete(3), a=g.Dict(c=g.MultiBinary(2))),
]
LISTS = record_lists.spaces()
each_space = pytest.mark.parametrize("space", SPACES, ids=str)


@each_space
def test_ray_writes_the_same_dict(space):
    from ray.rllib.utils.serialization import gym_space_to_dict

    record = spaces.from_object(space)
    assert canonical(to_ray_dict(record)) == canonical(_plain(gym_space_to_dict(space)))


def _plain(data):
    """gymnasium keeps the length of a MultiBinary as an array in some versions."""
    plain = dict(data)
    for key in plain:
        if isinstance(plain[key], np.ndarray):
            plain[key] = plain[key].tolist()
    return plain


@each_space
def test_ray_reads_what_we_write_as_the_same_space(space):
    from ray.rllib.utils.serialization import gym_space_from_dict

    assert gym_space_from_dict(to_ray_dict(spaces.from_object(space))) == space


@pytest.mark.parametrize("name", LISTS)
def test_lists_of_varying_length_are_kept_by_all_forms(name):
    from ray.rllib.utils.serialization import gym_space_from_dict, gym_space_to_dict

    space = spaces.from_object(LISTS[name])
    assert from_ray_dict(to_ray_dict(space)) == space
    assert spaces.from_object(gym_space_from_dict(to_ray_dict(space))) == space
    assert from_ray_dict(gym_space_to_dict(LISTS[name])) == space


@each_space
def test_we_read_what_ray_writes_as_the_same_space(space):
    from ray.rllib.utils.serialization import gym_space_to_dict, space_to_dict

    record = spaces.from_object(space)
    assert from_ray_dict(gym_space_to_dict(space)) == record
    assert from_ray_dict(space_to_dict(space)) == record


@each_space
def test_a_policy_sees_the_space_that_rays_preprocessors_make(space):
    from ray.rllib.models.preprocessors import get_preprocessor
    from ray.rllib.utils.serialization import space_to_dict

    seen = get_preprocessor(space)(space).observation_space
    assert canonical(to_preprocessed_dict(spaces.from_object(space))) == canonical(
        space_to_dict(seen)
    )


def test_the_original_space_is_found_below_the_flattened_one():
    space = spaces.DictSpace({"a": spaces.Discrete(3)})
    assert from_ray_dict(to_preprocessed_dict(space)) == space
    flat = spaces.Box(np.zeros(3), np.ones(3), original_space=space)
    assert from_ray_dict(to_preprocessed_dict(flat)) == space
    # Ray up to 2.3 wrapped the inner one less.
    older = {**to_preprocessed_dict(space), "original_space": to_ray_dict(space)}
    assert from_ray_dict(older) == space


@pytest.mark.parametrize(
    "file",
    sorted(MUSEUM.rglob("policy_state.msgpck")),
    ids=lambda f: f.relative_to(MUSEUM).as_posix(),
)
def test_spaces_of_real_checkpoints_are_read_and_written_as_they_were(file):
    spec = unpack(file)["policy_spec"]
    for name in ("observation_space", "action_space"):
        assert to_ray_dict(from_ray_dict(spec[name])) == spec[name]["space"]


@pytest.mark.parametrize("kind", ["text", "simplex", "flex_dict"])
def test_a_space_without_a_record_is_none_and_so_is_what_holds_it(kind):
    inner = {"space": kind, "max_len": 3}
    assert from_ray_dict(inner) is None
    assert from_ray_dict({"space": "tuple", "spaces": [inner]}) is None
    assert from_ray_dict({"space": "dict", "spaces": {"a": inner}}) is None


BOX = to_ray_dict(spaces.box(0, 1, (2,)))


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"space": "sphere"},
        {"space": ["box"]},
        {"space": "discrete"},
        {"space": "discrete", "n": 2.5},
        {"space": "discrete", "n": "2"},
        {"space": "multi-binary", "n": ["2"]},
        {"space": "tuple", "spaces": 3},
        {"space": "dict", "spaces": []},
        {**BOX, "shape": [3]},
        {**BOX, "dtype": "O"},
        {**BOX, "dtype": "no such"},
        {**BOX, "low": 0},
        {**BOX, "low": "%%%"},
        {**BOX, "low": "AAAA"},
        {**BOX, "low": BOX["low"][:40]},
    ],
    ids=repr,
)
def test_damage_is_told_with_its_place(data):
    with pytest.raises(CorruptCheckpointError) as caught:
        from_ray_dict(data, where="policies.p0.observation_space")
    assert caught.value.where == "policies.p0.observation_space"


def test_a_space_nested_without_end_does_not_crash():
    data = {"space": "discrete", "n": 2}
    for _ in range(5_000):
        data = {"space": "tuple", "spaces": [data]}
    with pytest.raises(CorruptCheckpointError):
        from_ray_dict(data)


def _text(npy):
    return base64.b64encode(zlib.compress(npy)).decode()


def test_a_pickle_in_the_array_is_not_loaded():
    buffer = io.BytesIO()
    np.save(buffer, np.array([None]), allow_pickle=True)
    with pytest.raises(ValueError, match="numbers"):
        decode_array(_text(buffer.getvalue()))


def test_an_array_that_declares_more_than_it_holds_takes_no_memory():
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(9))
    npy = buffer.getvalue().replace(b"(9,)", b"(9999999999999,)")
    with pytest.raises(ValueError, match="shape"):
        decode_array(_text(npy))


def test_an_array_that_inflates_without_end_is_cut():
    with pytest.raises(BudgetExceededError, match="unpacked"):
        decode_array(encode_array(np.zeros(1_000)), Budget(unpacked=1_000))


def test_an_array_that_is_one_number_takes_no_memory():
    text = encode_array(np.broadcast_to(np.float32(0.5), (4_000, 2_000)))
    assert len(text) < 100_000
    back = decode_array(text)
    assert back.shape == (4_000, 2_000)
    assert back.strides == (0, 0)
    assert (back[::999] == 0.5).all()


@pytest.mark.parametrize("at", [0, 1, 70_000, -1])
def test_an_array_of_which_one_number_differs_is_read_in_full(at):
    array = np.full(300_000, 3.0)
    array[at] = 4.0
    np.testing.assert_array_equal(decode_array(encode_array(array)), array, strict=True)


def test_a_discrete_of_two_billion_values_is_a_number():
    space = Discrete(2_000_000_000)
    assert from_ray_dict(to_ray_dict(space)) == space
    with pytest.raises(ValueError, match="2,000,000,000"):
        to_preprocessed_dict(space)


@pytest.mark.parametrize(
    "make",
    [
        lambda: spaces.box(0, 1, (100_000, 100_000)),
        lambda: MultiBinary((2_000_000_000,)),
        lambda: Discrete(1 << 100_000),
        lambda: Discrete(-1),
        lambda: Discrete(True),
        lambda: MultiDiscrete((3, -1)),
        lambda: MultiDiscrete([3]),
        lambda: TupleSpace((None,)),
        lambda: DictSpace({("a",): Discrete(2)}),
        lambda: Box(np.zeros(2), np.zeros(3)),
        lambda: Box(np.zeros(2), np.array(["a", "b"])),
        lambda: Box(np.zeros(2), np.zeros(2), "object"),
        lambda: doubled(20),
        lambda: nested(60),
    ],
)
def test_a_space_that_is_not_sound_is_never_made(make):
    with pytest.raises(ValueError, match=r"space|Box|Discrete|Multi|Dict|part|bounds"):
        make()


def doubled(levels):
    """A small nest that unfolds to 2**levels spaces."""
    space = Discrete(2)
    for _ in range(levels):
        space = TupleSpace((space, space))
    return space


def nested(levels):
    space = Discrete(2)
    for _ in range(levels):
        space = TupleSpace((space,))
    return space


@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_as_text_keep_type_shape_and_values_and_can_be_changed(order):
    array = np.asarray(np.arange(6, dtype=">f8").reshape(2, 3), order=order)
    back = decode_array(encode_array(array))
    np.testing.assert_array_equal(back, array, strict=True)
    back += 1
