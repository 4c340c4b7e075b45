"""Nested dicts, and what data has to be like, of Ray 2.3 – 2.9: later Rays check no specs."""

# ruff: noqa: SLF001 - nested dicts look into each other

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from typing import Any, ClassVar, TypeAlias

import numpy as np
import torch

__all__ = [
    "DATA_TYPE",
    "Constraint",
    "NPTensorSpec",
    "NestedDict",
    "NestedDictInputType",
    "NestedKeys",
    "SeqStrType",
    "Spec",
    "SpecDict",
    "SpecType",
    "StrKey",
    "TensorSpec",
    "TorchTensorSpec",
    "TypeSpec",
    "check_input_specs",
    "check_output_specs",
]

SeqStrType: TypeAlias = "str | Sequence[Any]"
NestedDictInputType: TypeAlias = "Iterable[Any] | Mapping[Any, Any]"


class StrKey(str):
    """A text that stands before and behind sequences of texts, too."""

    __slots__ = ()

    def __lt__(self, other: Any) -> bool:
        return str(self) < other if isinstance(other, str) else (str(self),) < tuple(other)

    def __gt__(self, other: Any) -> bool:
        return str(self) > other if isinstance(other, str) else (str(self),) > tuple(other)


def _flat(key: SeqStrType) -> tuple[str, ...]:
    """A key as texts, one for each level."""
    return (key,) if isinstance(key, str) else tuple(text for part in key for text in _flat(part))


class NestedDict(MutableMapping[Any, Any]):
    """A dict of dicts, whose keys are sequences of texts; an empty dict is not kept.

    Args:
        x: A mapping, or pairs of keys and values.
    """

    def __init__(self, x: NestedDictInputType | None = None) -> None:
        # Another's values are shared, as ever.
        self._data: dict[str, Any] = x._data if isinstance(x, NestedDict) else {}
        if x is not None and not isinstance(x, NestedDict):
            if not isinstance(x, Iterable):
                raise ValueError(f"A mapping or pairs are needed, not {type(x).__name__}.")
            for key, value in x.items() if isinstance(x, Mapping) else x:
                self[key] = value

    def _at(self, key: SeqStrType) -> Any:
        found: Any = self
        for text in _flat(key):
            level = found._data if isinstance(found, NestedDict) else found
            if not isinstance(level, Mapping) or text not in level:
                raise KeyError(key)
            found = level[text]
        return found

    def __contains__(self, key: Any) -> bool:
        try:
            self._at(key)
        except KeyError:
            return False
        return True

    def get(self, k: SeqStrType, default: Any = None) -> Any:
        """The value of a key.

        Raises:
            KeyError: There is none, and no other to give.
        """
        return self._at(k) if default is None or k in self else default

    def __getitem__(self, k: SeqStrType) -> Any:
        return self._at(k)

    def __setitem__(self, k: SeqStrType, v: Any) -> None:
        if isinstance(v, Mapping) and not v:
            return
        if not k:
            raise IndexError("A key has one text at least.")
        *above, last = _flat(k)
        level = self
        for text in above:
            level = level._data.setdefault(text, type(self)())
        level._data[last] = type(self)(v) if isinstance(v, Mapping) else v

    def __delitem__(self, k: SeqStrType) -> None:
        *above, last = _flat(k)
        holder = self._at(above) if above else self
        if last not in holder._data:
            raise KeyError(str([*above, last]))
        del holder._data[last]
        if above and not holder:
            del self[above]

    def __iter__(self) -> Iterator[tuple[StrKey, ...]]:
        for text, value in self._data.items():
            below = iter(value) if isinstance(value, NestedDict) else iter([()])
            yield from ((StrKey(text), *rest) for rest in below)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __str__(self) -> str:
        return str(self.asdict())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._data!r})"

    def filter(self, other: Any, ignore_missing: bool = False) -> NestedDict:
        """What is at the keys of another, or of a sequence of keys.

        Raises:
            KeyError: One is not there, and that is not ignored.
        """
        keys = other if isinstance(other, Sequence) else other.keys()
        there = [key for key in keys if not ignore_missing or key in self]
        return type(self)([(key, self._at(key)) for key in there])

    def asdict(self) -> dict[str, Any]:
        """The same as dicts of dicts."""
        return {
            key: value.asdict() if isinstance(value, NestedDict) else value
            for key, value in self._data.items()
        }

    def copy(self) -> NestedDict:
        """Another with the same values."""
        return NestedDict(self.items())

    __copy__ = copy

    def shallow_keys(self) -> Any:
        """The keys of the first level."""
        return self._data.keys()


class Spec:
    """What data has to be like."""

    def validate(self, data: Any) -> None:
        """Raises a ValueError where data is not so."""
        raise NotImplementedError


class TypeSpec(Spec):
    """A type.

    Args:
        dtype: The type, or several.
    """

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype

    def validate(self, data: Any) -> None:
        """Raises a ValueError for data of another type."""
        if not isinstance(data, self.dtype):
            raise ValueError(f"The type is {type(data).__name__}, and is to be {self.dtype}.")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypeSpec) and self.dtype == other.dtype

    __hash__ = None  # type: ignore[assignment]


class TensorSpec(Spec):
    """A shape, and maybe a type of numbers.

    Args:
        shape: The names of the dimensions: `"B, T, h"`.
        dtype: The type of numbers.
        **shape_vals: The sizes of some of them.

    Raises:
        ValueError: Names are not there, or twice, or sizes are no numbers above zero.
    """

    _kind: ClassVar[Any]

    def __init__(self, shape: str, *, dtype: Any = None, **shape_vals: Any) -> None:
        names = shape.replace(" ", "").split(",")
        if len(set(names)) < len(names):
            raise ValueError(f"A dimension is twice in {shape!r}.")
        for name, size in shape_vals.items():
            if name not in names:
                raise ValueError(f"There is no dimension {name!r} in {shape!r}.")
            if size is not None and (not isinstance(size, int) or size <= 0):
                raise ValueError(f"The size of {name!r} is {size!r}: give a number above zero.")
        self._shape, self._dtype = tuple(shape_vals.get(name, name) for name in names), dtype

    @property
    def shape(self) -> tuple[int | str, ...]:
        """The sizes that are given, and the names of the others."""
        return self._shape

    @property
    def full_shape(self) -> tuple[int, ...]:
        """The sizes, 1 where none is given."""
        return tuple(size if isinstance(size, int) else 1 for size in self._shape)

    @property
    def dtype(self) -> Any:
        """The type of numbers, or None."""
        return self._dtype

    def rdrop(self, n: int) -> TensorSpec:
        """One without the last dimensions."""
        assert isinstance(n, int), "a number of dimensions is needed"
        assert n >= 0, "so many dimensions can't be left out"
        return self._with(self._shape[:-n])

    def append(self, spec: TensorSpec) -> TensorSpec:
        """One with the dimensions of another behind its own."""
        return self._with((*self._shape, *spec.shape))

    def _with(self, shape: tuple[int | str, ...]) -> TensorSpec:
        made = copy.deepcopy(self)
        made._shape = shape
        return made

    def validate(self, data: Any) -> None:
        """Raises a ValueError for another kind, shape or type of numbers."""
        if not isinstance(data, self._kind):
            raise ValueError(f"A {self._kind.__name__} is needed, not {type(data).__name__}.")
        sizes = zip(self._shape, data.shape, strict=False)
        other = any(isinstance(size, int) and size != found for size, found in sizes)
        if other or len(data.shape) != len(self._shape):
            raise ValueError(f"The shape is {tuple(data.shape)}, and is to be {self._shape}.")
        if self._dtype and data.dtype != self._dtype:
            raise ValueError(f"The numbers are {data.dtype}, and are to be {self._dtype}.")

    def fill(self, fill_value: float = 0) -> Any:
        """A tensor that is as it has to be."""
        make: Any = torch.full if self._kind is torch.Tensor else np.full
        return make(self.full_shape, fill_value, dtype=self._dtype)

    def __repr__(self) -> str:
        return f"TensorSpec(shape={self._shape}, dtype={self._dtype})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TensorSpec):
            return False
        return (self._shape, self._dtype) == (other.shape, other.dtype)

    __hash__ = None  # type: ignore[assignment]


class TorchTensorSpec(TensorSpec):
    """The same of torch's tensors."""

    _kind = torch.Tensor


class NPTensorSpec(TensorSpec):
    """The same of numpy's arrays."""

    _kind = np.ndarray


DATA_TYPE: TypeAlias = "NestedDict | Mapping[str, Any]"
Constraint: TypeAlias = "type | tuple[type, ...] | Spec"
NestedKeys: TypeAlias = "list[str | tuple[str, ...]]"
SpecType: TypeAlias = "NestedKeys | NestedDict"


class SpecDict(NestedDict, Spec):
    """What each value of a nested dict has to be like: a `Spec`, a type, or None for anything."""

    def validate(self, data: DATA_TYPE, exact_match: bool = False) -> None:
        """Raises a ValueError where data is not so.

        Args:
            data: The dict.
            exact_match: Whether there may be nothing else.
        """
        given = NestedDict(data)
        if lacking := set(self) - set(given):
            raise ValueError(f"{lacking} are not in the data, which has {set(given)}.")
        if exact_match and (more := set(given) - set(self)):
            raise ValueError(f"{more} are in the data, and not in the spec.")
        for key, spec in self.items():
            _validate(key, spec, given[key])


def _validate(key: tuple[str, ...], spec: Any, value: Any) -> None:
    if isinstance(spec, (type, tuple)):
        spec = TypeSpec(spec)
    if spec is None:
        return
    if not isinstance(spec, Spec):
        raise ValueError(f"{key}: a spec is a Spec or a type, not {type(spec).__name__}.")
    try:
        spec.validate(value)
    except ValueError as error:
        raise ValueError(f"{key}: {error}") from None


def _canonical(spec: Any) -> Any:
    if isinstance(spec, list):
        return SpecDict(dict.fromkeys(_flat(key) for key in spec))
    if isinstance(spec, Mapping):
        return SpecDict(spec)
    return TypeSpec(spec) if isinstance(spec, type) else spec


def _checked(holder: Any, method: Callable[..., Any], name: str, data: Any, what: str) -> Any:
    """Data and its spec, after it was checked.

    Raises:
        ValueError: There is no such spec, or data is not so.
    """
    if not hasattr(holder, name):
        raise ValueError(f"{holder} has no attribute {name}, which says what the {what} is like.")
    spec = _canonical(getattr(holder, name))
    if isinstance(spec, SpecDict) and not isinstance(data, Mapping):
        raise ValueError(f"The {what} is a {type(data).__name__}, and is to be a mapping.")
    seen = NestedDict(data) if isinstance(spec, SpecDict) else data
    try:
        spec.validate(seen)
    except ValueError as error:
        where = f"{type(holder).__name__}.{method.__name__}"
        raise ValueError(f"The {what} of {where} is not as {name} says: {error}") from None
    return seen, spec


Method: TypeAlias = Callable[..., Any]


def check_input_specs(
    input_spec: str,
    *,
    filter: bool = False,  # noqa: A002 - its name
    cache: bool = False,
) -> Callable[[Method], Method]:
    """Checks what a method gets.

    Args:
        input_spec: The attribute that says what it has to be like.
        filter: Whether the method gets only what that names.
        cache: Whether only the first call is checked.
    """

    def decorate(method: Method) -> Method:
        @functools.wraps(method)
        def call(self: Any, input_data: Any, **kwargs: Any) -> Any:
            known = self.__dict__.setdefault("__checked_input_specs_cache__", {}) if cache else {}
            given = input_data
            if input_spec and method.__name__ not in known:
                given, spec = _checked(self, method, input_spec, input_data, "input")
            elif input_spec and filter:
                spec = _canonical(getattr(self, input_spec))
                given = NestedDict(input_data) if isinstance(spec, SpecDict) else input_data
            if input_spec and filter and isinstance(given, NestedDict):
                given = given.filter(spec)
            found = method(self, given, **kwargs)
            known[method.__name__] = True
            return found

        call.__checked_input_specs__ = True  # type: ignore[attr-defined]
        return call

    return decorate


def check_output_specs(output_spec: str, *, cache: bool = False) -> Callable[[Method], Method]:
    """Checks what a method gives.

    Args:
        output_spec: The attribute that says what it has to be like.
        cache: Whether only the first call is checked.
    """

    def decorate(method: Method) -> Method:
        @functools.wraps(method)
        def call(self: Any, input_data: Any, **kwargs: Any) -> Any:
            known = self.__dict__.setdefault("__checked_output_specs_cache__", {}) if cache else {}
            found = method(self, input_data, **kwargs)
            if output_spec and method.__name__ not in known:
                _checked(self, method, output_spec, found, "output")
            known[method.__name__] = True
            return found

        call.__checked_output_specs__ = True  # type: ignore[attr-defined]
        return call

    return decorate
