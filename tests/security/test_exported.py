"""Files of safetensors and one-file policies of strangers: read as data, or refused by name."""

import io
import json
import zipfile

import numpy as np
import pytest

from rllib_compat import convert, inspect, load_policy
from rllib_compat.errors import CheckpointError, CompatError
from tests.legacy.cases import find

CASE = next(case for case in find(ray="0.8.5") if case.variant == "worker1")


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """The file's header and its bytes behind that."""
    file = tmp_path_factory.mktemp("good") / "good.rlpolicy"
    convert(CASE.checkpoint, file, to="policy", algorithm="PPO", inputs=5)
    with zipfile.ZipFile(file) as archive:
        data = archive.read("policy.safetensors")
    size = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + size]), data[8 + size :]


def pack(header, body=b"", *, member="policy.safetensors", method=zipfile.ZIP_STORED):
    text = json.dumps(header).encode()
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", method) as archive:
        archive.writestr(member, len(text).to_bytes(8, "little") + text + body)
    return made.getvalue()


def changed(header, **changes):
    metadata = {**header["__metadata__"], **changes}
    return {**header, "__metadata__": metadata}


def entry(**changes):
    return {"dtype": "F32", "shape": [1], "data_offsets": [0, 4], **changes}


ODD = {
    "no archive": lambda h, b: b"PK\x03\x04 not really",
    "another member": lambda h, b: pack(h, b, member="../policy.safetensors"),
    "no graph": lambda h, b: pack(changed(h, graph="{}"), b),
    "a graph that is a list": lambda h, b: pack(changed(h, graph="[]"), b),
    "an operation of Python": lambda h, b: pack(
        changed(h, graph=h["__metadata__"]["graph"].replace('"dense"', '"__import__"')), b
    ),
    "a graph without an observation": lambda h, b: pack(
        changed(h, graph=h["__metadata__"]["graph"].replace('"obs"', '"nothing"')), b
    ),
    "spaces that are none": lambda h, b: pack(changed(h, acting='{"action_space": 3}'), b),
    "metadata of numbers": lambda h, b: pack(changed(h, graph=3), b),
    "bytes of two arrays": lambda h, b: pack({**h, "again": next(iter(h.values()))}, b),
    "beyond the end": lambda h, b: pack({**h, "x": entry(data_offsets=[len(b), len(b) + 4])}, b),
    "before the start": lambda h, b: pack({**h, "x": entry(data_offsets=[-4, 0])}, b),
    "a shape of text": lambda h, b: pack({**h, "x": entry(shape=["a"])}, b),
    "a huge shape": lambda h, b: pack({**h, "x": entry(shape=[1 << 62, 1 << 62])}, b),
    "objects": lambda h, b: pack({**h, "x": entry(dtype="O")}, b),
    "too many axes": lambda h, b: pack({**h, "x": entry(shape=[1] * 100)}, b + bytes(4)),
    "a header of lists": lambda h, b: pack([[h]], b),
    "deep JSON": lambda h, b: pack(changed(h, acting="[" * 100_000), b),
    "a bomb": lambda h, b: pack(h, bytes(1 << 29), method=zipfile.ZIP_DEFLATED),
    "a header without end": lambda h, b: pack({}, b)[:60],
}


@pytest.mark.parametrize("what", ODD)
def test_an_odd_file_is_refused_by_name(what, good, tmp_path):
    file = tmp_path / "odd.rlpolicy"
    file.write_bytes(ODD[what](*good))
    with pytest.raises(CompatError):
        load_policy(file)


def test_the_same_file_is_read_where_it_is_sound(good, tmp_path):
    header, body = good
    file = tmp_path / "good.rlpolicy"
    file.write_bytes(pack(header, body))
    policy = load_policy(file)
    assert policy.compute_single_action(np.zeros(4, np.float32)).actions in (0, 1)
    assert inspect(file).algorithm == "PPO"


def test_weights_that_do_not_say_what_is_computed_of_them_are_refused(tmp_path):
    numpy = pytest.importorskip("safetensors.numpy")
    file = tmp_path / "somebody.safetensors"
    numpy.save_file({"a": np.zeros(3, np.float32)}, file)
    with pytest.raises(CheckpointError, match="no description of the network"):
        load_policy(file)
