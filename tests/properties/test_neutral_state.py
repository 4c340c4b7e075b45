"""The neutral state survives the way through plain data, and through a msgpack checkpoint."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from hypothesis import HealthCheck, given, settings

from rllib_compat.formats import pack, unpack, write_msgpack
from rllib_compat.formats.layouts import own_msgpack
from rllib_compat.formats.msgpack.state import from_plain, to_plain
from rllib_compat.formats.spaces import from_ray_dict, to_preprocessed_dict, to_ray_dict
from rllib_compat.neutral import Budget
from tests.properties import strategies
from tests.properties.same import assert_same

many_parts = settings(
    deadline=None,
    max_examples=30,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@many_parts
@given(strategies.neutral)
def test_any_value_of_a_neutral_state_survives_msgpack(value):
    assert_same(from_plain(unpack(pack(to_plain(value)))), value)


@many_parts
@given(strategies.checkpoints)
def test_a_checkpoint_of_any_era_survives_as_plain_data(checkpoint):
    assert_same(from_plain(unpack(pack(to_plain(checkpoint)))), checkpoint)


@many_parts
@given(strategies.checkpoints)
def test_a_checkpoint_of_any_era_survives_a_msgpack_checkpoint(checkpoint):
    with tempfile.TemporaryDirectory() as folder:
        write_msgpack(checkpoint, Path(folder))
        back = own_msgpack.read(Path(folder), Budget())
    back = replace(back, source=replace(back.source, path=checkpoint.source.path))
    assert_same(back, checkpoint)


@many_parts
@given(strategies.checkpoints)
def test_ray_can_unpack_every_file_that_is_written(checkpoint):
    import msgpack_numpy

    with tempfile.TemporaryDirectory() as folder:
        write_msgpack(checkpoint, Path(folder))
        for file in Path(folder).rglob("*.msgpck"):
            # As Ray calls it: with text keys only. It knows no dates among the numbers.
            msgpack_numpy.unpackb(file.read_bytes())


@given(strategies.any_space)
def test_a_space_survives_the_form_that_ray_keeps_it_in(space):
    assert from_ray_dict(unpack(pack(to_ray_dict(space)))) == space
    assert from_ray_dict(unpack(pack(to_preprocessed_dict(space)))) == space
