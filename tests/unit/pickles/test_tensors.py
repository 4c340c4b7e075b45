"""Tensors: every form in which torch ever put them into a file."""

import io
import pickle
import zipfile

import numpy as np
import pytest
import torch

from rllib_compat.errors import CorruptCheckpointError
from rllib_compat.formats import load_pickle, load_torch
from rllib_compat.neutral import StandIn
from tests.unit.pickles.assembler import STOP, call, items, named, number, raw, shape, text

BASE = torch.arange(24.0).reshape(2, 3, 4)
TENSORS = {
    "float32": BASE,
    "float64": BASE.double(),
    "float16": BASE.half(),
    "bfloat16": (BASE / 3).bfloat16(),
    "int64": BASE.long(),
    "int32": BASE.int(),
    "int16": BASE.short(),
    "int8": BASE.char(),
    "uint8": BASE.byte(),
    "bool": BASE > 3,
    "complex64": BASE * 1j,
    "scalar": torch.tensor(3.5),
    "empty": torch.zeros(0, 3),
    "part": BASE[1, 1:, 2],
    "transposed": BASE.permute(2, 0, 1),
    "expanded": torch.tensor([1.0, 2.0]).expand(3, 2),
    "parameter": torch.nn.Parameter(BASE),
}


def saved(value, zipped):
    file = io.BytesIO()
    torch.save(value, file, _use_new_zipfile_serialization=zipped)
    return file.getvalue()


def check(array, tensor):
    assert isinstance(array, np.ndarray)
    wanted = tensor.detach()
    wanted = wanted.float() if wanted.dtype == torch.bfloat16 else wanted
    np.testing.assert_array_equal(array, wanted.numpy(), strict=True)


@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "legacy"])
@pytest.mark.parametrize("name", TENSORS)
def test_files_of_torch_save_are_read(name, zipped, tmp_path):
    data = saved({"w": TENSORS[name], "n": 1}, zipped)
    loaded = load_torch(data)
    check(loaded.value["w"], TENSORS[name])
    assert loaded.value["n"] == 1
    assert loaded.size == len(data)
    assert not loaded.unknown
    (tmp_path / "module_state.pt").write_bytes(data)
    check(load_torch(tmp_path / "module_state.pt").value["w"], TENSORS[name])


@pytest.mark.parametrize("protocol", range(2, 6))
@pytest.mark.parametrize("name", TENSORS)
def test_tensors_in_plain_pickles_are_read(name, protocol):
    loaded = load_pickle(pickle.dumps([TENSORS[name]], protocol))
    check(loaded.value[0], TENSORS[name])
    assert not loaded.unknown
    assert loaded.globals["torch.storage._load_from_bytes"] == 1


def test_a_state_dict_and_an_optimizer_are_read():
    net = torch.nn.Linear(3, 2)
    optimizer = torch.optim.Adam(net.parameters())
    net(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    for zipped in (True, False):
        weights, slots = load_torch(saved([net.state_dict(), optimizer.state_dict()], zipped)).value
        check(weights["weight"], net.weight)
        check(slots["state"][0]["exp_avg"], optimizer.state_dict()["state"][0]["exp_avg"])
        assert slots["param_groups"][0]["lr"] == 1e-3


def test_tensors_that_share_their_storage_are_read():
    for zipped in (True, False):
        whole, part = load_torch(saved([BASE, BASE[1]], zipped)).value
        check(whole, BASE)
        check(part, BASE[1])


def test_sizes_devices_and_dtypes_are_read():
    value = [torch.Size([2, 3]), torch.device("cuda:1"), torch.device("cpu"), torch.float32]
    size, gpu, cpu, kind = load_torch(saved(value, True)).value
    assert (size, gpu, cpu) == ((2, 3), "cuda:1", "cpu")
    assert kind.qualified == "torch.float32"


def test_a_plain_pickle_named_as_torch_is_read():
    data = pickle.dumps({"pi.weight": np.ones(3, np.float32)})
    np.testing.assert_array_equal(load_torch(data).value["pi.weight"], np.ones(3))


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
def test_quantised_and_sparse_tensors_become_records():
    quantised = torch.quantize_per_tensor(BASE, 0.1, 0, torch.qint8)
    for value in (quantised, BASE.to_sparse()):
        loaded = load_torch(saved({"w": value}, True))
        assert isinstance(loaded.value["w"], StandIn)
        assert loaded.unknown


def rebuilt(offset, sizes, strides, numel=4):
    # A typed storage in a stream of its own, as plain pickles of tensors hold it.
    stream = saved(torch.arange(float(numel)).storage(), False)
    storage = call("torch.storage", "_load_from_bytes", raw(stream))
    return call("torch._utils", "_rebuild_tensor", storage, number(offset), sizes, strides) + STOP


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
@pytest.mark.parametrize(
    ("offset", "sizes", "strides"),
    [
        (0, (5,), (1,)),
        (1, (4,), (1,)),
        (-1, (2,), (1,)),
        (0, (2,), (-1,)),
        (3, (2,), (-1,)),
        (0, (2,), (4,)),
        (0, (2, 2), (1,)),
        (0, (-1,), (1,)),
        (4, (), ()),
        (0, (10**6, 10**6), (0, 0)),
    ],
)
def test_a_tensor_beyond_its_storage_is_told(offset, sizes, strides):
    with pytest.raises(CorruptCheckpointError):
        load_pickle(rebuilt(offset, shape(*sizes), shape(*strides)))


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_a_tensor_within_its_storage_is_read():
    loaded = load_pickle(rebuilt(1, shape(3), shape(1)))
    np.testing.assert_array_equal(loaded.value, [1, 2, 3])


def test_a_tensor_of_no_storage_becomes_a_record():
    made = call("torch._utils", "_rebuild_tensor", text("x"), number(0), items(), items())
    assert isinstance(load_pickle(made + STOP).value, StandIn)
    assert isinstance(
        load_pickle(named("torch._utils", "_rebuild_qtensor") + b")R.").value, StandIn
    )


@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "legacy"])
def test_a_file_cut_short_or_changed_is_told_or_read(zipped):
    data = saved({"w": torch.ones(3)}, zipped)
    for end in range(4, len(data), 1 if not zipped else 7):
        with pytest.raises(CorruptCheckpointError):
            load_torch(data[:end])
    for position in range(len(data)):
        broken = bytearray(data)
        broken[position] ^= 0x41
        try:
            load_torch(bytes(broken))
        except CorruptCheckpointError:
            continue


def rewritten(edit, compression=zipfile.ZIP_STORED):
    """A file of torch whose members went through `edit`."""
    source = zipfile.ZipFile(io.BytesIO(saved({"w": torch.ones(3)}, True)))
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, data in edit({n: source.read(n) for n in source.namelist()}).items():
            archive.writestr(name, data)
    return file.getvalue()


def test_a_rewritten_zip_file_is_read():
    np.testing.assert_array_equal(load_torch(rewritten(dict)).value["w"], np.ones(3))


EDITS = {
    "no pickle": lambda m: {n: d for n, d in m.items() if not n.endswith("data.pkl")},
    "two pickles": lambda m: m | {"other/data.pkl": b"N."},
    "no storage": lambda m: {n: d for n, d in m.items() if "data/" not in n},
    "a short storage": lambda m: {n: d[:8] if "data/" in n else d for n, d in m.items()},
    "a long storage": lambda m: {n: d + d if "data/" in n else d for n, d in m.items()},
    "big-endian tensors": lambda m: {n: b"big" if "byteorder" in n else d for n, d in m.items()},
    "nothing": lambda m: {},
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_a_zip_file_that_contradicts_itself_is_told(edit):
    with pytest.raises(CorruptCheckpointError):
        load_torch(rewritten(edit), where="module_state.pt")


def test_a_compressed_zip_file_is_told_for_it_may_be_a_bomb():
    def bomb(members):
        return {n: bytes(1 << 26) if "data/" in n else d for n, d in members.items()}

    with pytest.raises(CorruptCheckpointError, match="compressed"):
        load_torch(rewritten(bomb, zipfile.ZIP_DEFLATED))


def test_names_that_climb_out_of_a_zip_file_write_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    load_torch(rewritten(lambda m: m | {"../../evil": b"x", "/evil": b"x", "C:\\evil": b"x"}))
    assert not list(tmp_path.iterdir())


def test_a_storage_larger_than_its_file_is_told():
    data = saved(torch.ones(3), False)
    assert data.count(b"K\x03") >= 1
    with pytest.raises(CorruptCheckpointError):
        load_torch(data.replace(b"K\x03", b"J\xff\xff\xff\x7f", 1))
