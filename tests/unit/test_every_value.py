"""Nothing of a checkpoint is lost: each value that its files hold is in what reading makes of them.

The files are read once more, by Python's own unpickler, which shares no code with the package's and
makes empty classes of whatever it does not know. Values that could be found by chance (small
integers, short texts, None) are left out.
"""

import contextlib
import io
import json
import math
import pickle
import zipfile
from collections import deque
from collections.abc import Mapping
from dataclasses import fields, is_dataclass

import numpy as np
import pytest

from rllib_compat.formats import read_checkpoint
from tests.legacy.cases import all_cases
from tests.marks import marked

#: Of numpy and the standard library, and nothing that runs code.
PLAIN = {
    "numpy": {"ndarray", "dtype"},
    "numpy._core.multiarray": {"_reconstruct", "scalar"},
    "numpy._core.numeric": {"_frombuffer"},
    "collections": {"OrderedDict", "deque"},
    "_codecs": {"encode"},
}
#: What has another form in the neutral state, or is none of the checkpoint's, by its last names.
OTHER_FORM = {
    # Spaces: the same by themselves, and the generator that only samples.
    *("low", "high", "low_repr", "high_repr", "bounded_below", "bounded_above", "dtype", "space"),
    *("shape", "_shape", "nvec", "_np_random", "bit_generator", "state", "inc"),
    # Filters: what the worker had not told the others yet.
    *("buffer", "_M", "_S"),
    # The format's own words, and the classes of parts that each Ray makes anew.
    *("type", "format", "state_file", "class_and_ctor_args_file", "module_state_dir"),
    *("optimizer_state_dir", "checkpoint_date_time", "module_spec_class", "catalog_class"),
    *("policy_class", "module_class", "marl_module_class", "multi_rl_module_class"),
    "catalog_class_path",
    # torch's own files inside a pickle.
    *("_optimizer_variables", "exp_avg", "exp_avg_sq", "step"),
}
#: A name that Ray gives to classes that it makes, and torch's word before a reference.
WORDS = {"new_base", "persistent"}
#: Greater ones are magic numbers of formats.
MOST = 1 << 63


class Unknown:
    """An object of a class that is not known: what it was made of."""

    def __new__(cls, *args, **kwargs):
        made = object.__new__(cls)
        made.parts = [args, kwargs]
        return made

    def __init__(self, *args, **kwargs):
        pass

    def __setstate__(self, state):
        self.parts.append(state)

    def __setitem__(self, key, value):
        self.parts.append({key: value})

    def append(self, item):
        self.parts.append([item])

    def __call__(self, *args, **kwargs):
        return Unknown(*args, **kwargs)


class Unpickler(pickle.Unpickler):
    def find_class(self, module, name):
        module = module.replace("numpy.core", "numpy._core")
        if name in PLAIN.get(module, ()):
            return super().find_class(module, name)
        if name == "defaultdict":
            return lambda *_: {}
        return type(name, (Unknown,), {})

    def persistent_load(self, pid):
        return ("persistent",)


def load(file):
    data = file.read_bytes()
    if file.suffix == ".json":
        return json.loads(data)
    if data[:2] == b"PK":
        archive = zipfile.ZipFile(file)
        data = archive.read(next(n for n in archive.namelist() if n.endswith("data.pkl")))
    return Unpickler(io.BytesIO(data)).load() if data[:1] == b"\x80" else None


def walk(value, path=(), seen=None):
    """The leaves of nested values with the names above them, pickles inside pickles among them."""
    seen = {} if seen is None else seen
    if isinstance(value, (Mapping, list, tuple, set, frozenset, deque, Unknown)):
        if id(value) in seen:
            return
        seen[id(value)] = value  # kept, or its place may be another's
    of_objects = getattr(getattr(value, "dtype", None), "hasobject", False)
    value = value.tolist() if of_objects else value
    if type(value) in (bytes, memoryview) and bytes(value[:1]) == b"\x80":
        with contextlib.suppress(Exception):  # bytes that only look so
            value = [Unpickler(io.BytesIO(value)).load()]
    if is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Unknown):
        value = value.parts
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from walk(inner, (*path, str(name)), seen)
    elif isinstance(value, (list, tuple, set, frozenset, deque)):
        for inner in value:
            yield from walk(inner, path, seen)
    else:
        yield path, value


def distinct(value):
    """A value in a form that can be looked up; None: it could be found by chance."""
    if isinstance(value, (np.ndarray, np.generic)) and np.asarray(value).size == 1:
        value = np.asarray(value).ravel()[0].item()
    if isinstance(value, np.ndarray):
        return value.shape, value.tobytes()
    if isinstance(value, str):
        return value if len(value) > 3 and value not in WORDS else None
    if isinstance(value, (int, float)) and math.isfinite(value):
        return float(value) if value != int(value) or 1000 < abs(value) < MOST else None
    return None


def files_of(checkpoint):
    if checkpoint.is_file():
        return [checkpoint, *checkpoint.parent.glob(f"{checkpoint.name}.*")]
    return [file for file in checkpoint.rglob("*") if file.is_file()]


CASES = all_cases()
#: One of each Ray and API stack.
FEW = {(case.ray, case.stack): case for case in CASES}.values()


@pytest.mark.parametrize("case", marked(CASES, FEW))
def test_every_value_of_a_checkpoints_files_is_in_what_is_read(case):
    have = {distinct(value) for _, value in walk(read_checkpoint(case.checkpoint))}
    lost = {
        (file.name, *path): value
        for file in files_of(case.checkpoint)
        for path, value in walk(load(file))
        if not OTHER_FORM & set(path[-2:]) and distinct(value) not in {None, *have}
    }
    assert not lost
