"""The table of names that mean something to this package when a pickle names them.

A name has to match in full, module and name. What is not in here becomes a stand-in.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

from rllib_compat.formats import spaces
from rllib_compat.formats.pickles import arrays, rllib
from rllib_compat.formats.pickles import python_types as python
from rllib_compat.formats.pickles.machine import Constructor, Names

_BUILTINS = "builtins __builtin__"
_PATHS = "pathlib pathlib._local"
_CORE = "numpy.core.multiarray numpy._core.multiarray numpy.core._multiarray_umath numpy"
_NUMERIC = "numpy.core.numeric numpy._core.numeric"
_VERSIONS = "packaging.version pkg_resources.extern.packaging.version"
_CLOUDPICKLE = (
    "ray.cloudpickle.cloudpickle ray.cloudpickle.cloudpickle_fast "
    "cloudpickle.cloudpickle cloudpickle.cloudpickle_fast"
)
_FILTER = "ray.rllib.utils.filter"

#: Modules, names, and what makes the object of the arguments of the call.
_MADE: tuple[tuple[str, str, Callable[..., Any]], ...] = (
    (_BUILTINS, "set", python.make_set),
    (_BUILTINS, "frozenset", python.make_frozenset),
    (_BUILTINS, "bytearray", python.make_bytearray),
    (_BUILTINS, "bytes", python.make_bytes),
    (_BUILTINS, "complex", python.make_complex),
    (_BUILTINS, "range xrange", python.make_range),
    (_BUILTINS, "slice", python.make_slice),
    ("_codecs codecs", "encode", python.encode),
    ("collections", "OrderedDict", python.make_ordered_dict),
    ("collections", "defaultdict", python.make_default_dict),
    ("collections", "Counter", python.make_counter),
    ("collections", "deque", python.make_deque),
    ("datetime", "date", python.make_date),
    ("datetime", "datetime", python.make_datetime),
    ("datetime", "time", python.make_time),
    ("datetime", "timedelta", python.make_timedelta),
    ("datetime", "timezone", python.make_timezone),
    (_PATHS, "PosixPath PurePosixPath", python.path_maker(PurePosixPath)),
    (_PATHS, "WindowsPath PureWindowsPath", python.path_maker(PureWindowsPath)),
    (_CLOUDPICKLE, "_class_setstate _function_setstate", python.attach_state),
    (_CORE, "scalar", arrays.make_scalar),
    (f"{_CORE} {_NUMERIC}", "_frombuffer", arrays.make_from_buffer),
    (_CLOUDPICKLE, "_numpy_frombuffer", arrays.make_from_buffer),
    (_FILTER, "NoFilter", rllib.make_no_filter),
    ("ray.rllib.policy.policy", "PolicySpec", rllib.make_policy_spec),
    ("torch._utils", "_rebuild_tensor _rebuild_tensor_v2", arrays.make_tensor),
    ("torch._utils", "_rebuild_tensor_v3", arrays.make_tensor_v3),
    ("torch._utils", "_rebuild_parameter _rebuild_parameter_with_state", arrays.make_parameter),
    ("torch.storage", "_load_from_bytes", arrays.make_from_bytes),
    ("torch", "Size", arrays.make_size),
    ("torch", "device", arrays.make_device),
)

#: Modules, names, and what makes the object as soon as its state is there.
_FILLED: tuple[tuple[str, str, Callable[..., Any]], ...] = (
    (_VERSIONS, "Version", python.fill_version),
    (_CORE, "_reconstruct", arrays.fill_ndarray),
    ("numpy", "dtype", arrays.fill_dtype),
    (_FILTER, "MeanStdFilter", rllib.mean_std_filter_filler("MeanStdFilter")),
    (_FILTER, "ConcurrentMeanStdFilter", rllib.mean_std_filter_filler("ConcurrentMeanStdFilter")),
    (_FILTER, "RunningStat", rllib.fill_running_stat),
    ("ray.rllib.utils.spaces.repeated", "Repeated", spaces.fill_repeated),
    *(
        (f"{gym}.spaces {' '.join(f'{gym}.spaces.{file}' for file in files.split())}", name, read)
        for name, (files, read) in spaces.PICKLED.items()
        for gym in ("gym", "gymnasium")
    ),
)

#: Modules and names that are fine as mere names: types given as values, random generators.
_INERT = (
    (_BUILTINS, "object bool int long float str unicode list tuple dict type"),
    ("copyreg copy_reg", "_reconstructor"),  # the machine's own affair
    (_VERSIONS, "_Version"),
    ("packaging._structures", "InfinityType NegativeInfinityType"),
    ("numpy", "ndarray"),
    ("numpy", "bool_ bool int8 int16 int32 int64 intc longlong uint8 uint16 uint32 uint64 uintc"),
    ("numpy", "ulonglong float16 float32 float64 longdouble complex64 complex128 str_ bytes_"),
    ("numpy", "object_ void datetime64 timedelta64"),
    ("numpy.random._pickle", "__randomstate_ctor __generator_ctor __bit_generator_ctor"),
    ("numpy.random", "__RandomState_ctor"),
    ("numpy.random._mt19937", "MT19937"),
    ("numpy.random._pcg64", "PCG64 PCG64DXSM"),
    ("numpy.random._philox", "Philox"),
    ("numpy.random._sfc64", "SFC64"),
    ("numpy.random.bit_generator", "SeedSequence __pyx_unpickle_SeedSequence"),
    ("gym.utils.seeding", "RandomNumberGenerator._generator_ctor"),
    ("torch", " ".join(arrays.DTYPES)),
    ("torch torch.cuda torch.storage", " ".join(arrays.STORAGES)),
)

NAMES: Names = {
    row: constructor
    for modules, names, constructor in (
        *((modules, names, Constructor(make=make)) for modules, names, make in _MADE),
        *((modules, names, Constructor(fill=fill)) for modules, names, fill in _FILLED),
        *((modules, names, Constructor()) for modules, names in _INERT),
    )
    for row in product(modules.split(), names.split())
}
