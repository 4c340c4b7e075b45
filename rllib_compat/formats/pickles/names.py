"""The table of names that mean something to this package when a pickle names them.

A name has to match in full, module and name. What is not in here becomes a stand-in. Rows without
a constructor are names that are fine as mere names: types given as values, random generators.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import PurePosixPath, PureWindowsPath

from rllib_compat.formats.pickles import arrays, plain, rllib, tensors
from rllib_compat.formats.pickles.machine import Known, Names

_INERT = Known()


def _rows(
    modules: str, names: str | Iterable[str], known: Known
) -> Iterator[tuple[tuple[str, str], Known]]:
    names = names.split() if isinstance(names, str) else names
    return ((row, known) for row in product(modules.split(), names))


_BUILTINS = "builtins __builtin__"
_CODECS = "_codecs codecs"
_PATHS = "pathlib pathlib._local"
_CORE = "numpy.core.multiarray numpy._core.multiarray numpy.core._multiarray_umath numpy"
_NUMERIC = "numpy.core.numeric numpy._core.numeric"
_VERSIONS = "packaging.version pkg_resources.extern.packaging.version"
_CLOUDPICKLE = (
    "ray.cloudpickle.cloudpickle ray.cloudpickle.cloudpickle_fast "
    "cloudpickle.cloudpickle cloudpickle.cloudpickle_fast"
)
_FILTER = "ray.rllib.utils.filter"
_SPACE_MODULES = {
    "Box": "box",
    "Discrete": "discrete",
    "MultiDiscrete": "multi_discrete",
    "MultiBinary": "multi_binary",
    "Tuple": "tuple tuple_space",
    "Dict": "dict dict_space",
}


def _spaces() -> Iterator[tuple[tuple[str, str], Known]]:
    for name, files in _SPACE_MODULES.items():
        for gym in ("gym", "gymnasium"):
            modules = [f"{gym}.spaces", *(f"{gym}.spaces.{file}" for file in files.split())]
            yield from _rows(" ".join(modules), name, Known(fill=rllib.SPACES[name]))


NAMES: Names = dict(
    [
        # Python
        *_rows(_BUILTINS, "set", Known(plain.make_set)),
        *_rows(_BUILTINS, "frozenset", Known(plain.make_frozenset)),
        *_rows(_BUILTINS, "bytearray", Known(plain.byte_array)),
        *_rows(_BUILTINS, "bytes", Known(plain.byte_string)),
        *_rows(_BUILTINS, "complex", Known(plain.make_complex)),
        *_rows(_BUILTINS, "range xrange", Known(plain.make_range)),
        *_rows(_BUILTINS, "slice", Known(plain.make_slice)),
        *_rows(_BUILTINS, "object bool int long float str unicode list tuple dict type", _INERT),
        *_rows(_CODECS, "encode", Known(plain.encode)),
        *_rows("copyreg copy_reg", "_reconstructor", _INERT),  # the machine's own affair
        *_rows("collections", "OrderedDict", Known(plain.ordered_dict)),
        *_rows("collections", "defaultdict", Known(plain.default_dict)),
        *_rows("collections", "Counter", Known(plain.counter)),
        *_rows("collections", "deque", Known(plain.queue)),
        *_rows("datetime", "date", Known(plain.date)),
        *_rows("datetime", "datetime", Known(plain.date_time)),
        *_rows("datetime", "time", Known(plain.time)),
        *_rows("datetime", "timedelta", Known(plain.time_delta)),
        *_rows("datetime", "timezone", Known(plain.time_zone)),
        *_rows(_PATHS, "PosixPath PurePosixPath", Known(plain.path(PurePosixPath))),
        *_rows(_PATHS, "WindowsPath PureWindowsPath", Known(plain.path(PureWindowsPath))),
        *_rows(_VERSIONS, "Version", Known(fill=plain.version)),
        *_rows(_VERSIONS, "_Version", _INERT),
        *_rows("packaging._structures", "InfinityType NegativeInfinityType", _INERT),
        *_rows(_CLOUDPICKLE, "_class_setstate _function_setstate", Known(plain.attach_state)),
        # numpy
        *_rows(_CORE, "_reconstruct", Known(fill=arrays.ndarray)),
        *_rows(_CORE, "scalar", Known(arrays.scalar)),
        *_rows(f"{_CORE} {_NUMERIC}", "_frombuffer", Known(arrays.from_buffer)),
        *_rows(_CLOUDPICKLE, "_numpy_frombuffer", Known(arrays.from_buffer)),
        *_rows("numpy", "dtype", Known(fill=arrays.dtype)),
        *_rows("numpy", "ndarray", _INERT),
        *_rows(
            "numpy",
            "bool_ bool int8 int16 int32 int64 intc longlong uint8 uint16 uint32 uint64 uintc "
            "ulonglong float16 float32 float64 longdouble complex64 complex128 str_ bytes_ "
            "object_ void datetime64 timedelta64",
            _INERT,
        ),
        *_rows(
            "numpy.random._pickle",
            "__randomstate_ctor __generator_ctor __bit_generator_ctor",
            _INERT,
        ),
        *_rows("numpy.random", "__RandomState_ctor", _INERT),
        *_rows("numpy.random._mt19937", "MT19937", _INERT),
        *_rows("numpy.random._pcg64", "PCG64 PCG64DXSM", _INERT),
        *_rows("numpy.random._philox", "Philox", _INERT),
        *_rows("numpy.random._sfc64", "SFC64", _INERT),
        *_rows("numpy.random.bit_generator", "SeedSequence", _INERT),
        *_rows("numpy.random.bit_generator", "__pyx_unpickle_SeedSequence", _INERT),
        # gym, gymnasium
        *_spaces(),
        *_rows("gym.utils.seeding", "RandomNumberGenerator._generator_ctor", _INERT),
        # RLlib
        *_rows(_FILTER, "NoFilter", Known(rllib.no_filter)),
        *_rows(_FILTER, "MeanStdFilter", Known(fill=rllib.mean_std_filter("MeanStdFilter"))),
        *_rows(
            _FILTER,
            "ConcurrentMeanStdFilter",
            Known(fill=rllib.mean_std_filter("ConcurrentMeanStdFilter")),
        ),
        *_rows(_FILTER, "RunningStat", Known(fill=rllib.running_stat)),
        *_rows("ray.rllib.policy.policy", "PolicySpec", Known(rllib.policy_spec)),
        # torch
        *_rows("torch._utils", "_rebuild_tensor _rebuild_tensor_v2", Known(tensors.tensor)),
        *_rows("torch._utils", "_rebuild_tensor_v3", Known(tensors.tensor_v3)),
        *_rows(
            "torch._utils",
            "_rebuild_parameter _rebuild_parameter_with_state",
            Known(tensors.parameter),
        ),
        *_rows("torch.storage", "_load_from_bytes", Known(tensors.load_from_bytes)),
        *_rows("torch", "Size", Known(tensors.size)),
        *_rows("torch", "device", Known(tensors.device)),
        *_rows("torch", tensors.DTYPES, _INERT),
        *_rows("torch torch.cuda torch.storage", tensors.STORAGES, _INERT),
    ]
)
