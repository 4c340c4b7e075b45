"""What the value of a legacy key may be: the kinds that hold other values."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from math import inf
from typing import Any

import numpy as np

from rllib_compat.config.values.kinds import Kind, Name
from rllib_compat.config.values.validator import REJECTED, Origin, Validator, child_path, is_opaque
from rllib_compat.neutral import spaces
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.records import is_stand_in
from rllib_compat.neutral.spaces import parse_repr

#: Text of a space that is longer is not read.
LONGEST_REPR = 10_000
#: Spaces of more numbers than this are not made for a file: 16 MB a bound.
LARGEST_SPACE = 4_000_000


@frozen(eq=False)
class ListOf(Kind):
    """A list (or tuple) of values of one kind. It passes whole, or not at all.

    Attributes:
        item: What each entry may be.
        least: The smallest number of entries.
        most: The largest.
    """

    item: Kind
    least: int = 0
    most: float = inf

    def describe(self) -> str:
        length = f"{self.least} to {self.most} of: " if self.most < inf else ""
        return f"a list ({length}{self.item.describe()})"

    def matches(self, value: object) -> bool:
        return isinstance(value, (list, tuple, set, frozenset, np.ndarray))

    def accept(self, value: Any, path: str, validator: Validator) -> Any:
        if not self.least <= len(value) <= self.most:
            return validator.reject(path, value, self)
        entries = value.tolist() if isinstance(value, np.ndarray) else value
        kept = [self.item.validate(v, f"{path}[{i}]", validator) for i, v in enumerate(entries)]
        if any(entry is REJECTED for entry in kept):
            return REJECTED
        return kept if isinstance(value, np.ndarray) else type(value)(kept)


@frozen(eq=False)
class Row(Kind):
    """A list whose entries have kinds of their own, by position. It passes whole."""

    items: tuple[Kind, ...]

    def describe(self) -> str:
        return f"[{'; '.join(kind.describe() for kind in self.items)}]"

    def matches(self, value: object) -> bool:
        return isinstance(value, (list, tuple)) and len(value) == len(self.items)

    def accept(self, value: Any, path: str, validator: Validator) -> Any:
        pairs = zip(self.items, value, strict=True)
        kept = [kind.validate(v, f"{path}[{i}]", validator) for i, (kind, v) in enumerate(pairs)]
        return REJECTED if any(entry is REJECTED for entry in kept) else type(value)(kept)


class _Mapping(Kind):
    """A kind of dicts."""

    def matches(self, value: object) -> bool:
        return isinstance(value, Mapping)


@frozen(eq=False)
class Table(_Mapping):
    """A dict from names to values of one kind; entries pass one by one."""

    key: Name
    value: Kind

    def describe(self) -> str:
        return f"a dict from {self.key.describe()} to {self.value.describe()}"

    def accept(self, value: Any, path: str, validator: Validator) -> Any:
        kept = {}
        for key, inner in value.items():
            where = child_path(path, key)
            name = self.key.validate(key, where, validator)
            one = REJECTED if name is REJECTED else self.value.validate(inner, where, validator)
            if one is not REJECTED:
                kept[name] = one
        return kept


@frozen(eq=False)
class Fields(_Mapping):
    """A dict with known keys; entries pass one by one.

    Attributes:
        fields: Key → what it may hold.
        other: What other keys may hold; None: there are no others.
    """

    fields: Mapping[str, Kind]
    other: Kind | None = None

    def describe(self) -> str:
        if not self.fields and self.other is not None:
            return f"a dict of {self.other.describe()}"
        names = ", ".join(list(self.fields)[:8])
        return f"a dict of {names}" + (", …" if len(self.fields) > 8 or self.other else "")

    @property
    def code(self) -> bool:
        return any(kind.code for kind in self.fields.values())

    def accept(self, value: Any, path: str, validator: Validator) -> Any:
        kept = {}
        for key, inner in value.items():
            kind = self.fields.get(key, self.other) if isinstance(key, str) else self.other
            where = child_path(path, key)
            if kind is not None:
                one = kind.validate(inner, where, validator)
                if one is not REJECTED:
                    kept[key] = one
            elif validator.origin is Origin.USER:  # an argument that some class of theirs may take
                kept[key] = inner
            else:
                validator.reject(where, inner, self, "a key that is not known here")
        return REJECTED if validator.spent else kept


@frozen(eq=False)
class Data(Kind):
    """Plain data of any shape: numbers, text, switches, lists and dicts of them, arrays."""

    def describe(self) -> str:
        return "plain data (numbers, text, lists and dicts of them)"

    def accept(self, value: object, path: str, validator: Validator) -> Any:
        if isinstance(value, int) and value.bit_length() > 64:
            return validator.reject(path, value, self, "no number is that large")
        if isinstance(value, (str, bytes, bool, int, float, np.generic)):
            return value
        if isinstance(value, np.ndarray):
            return validator.reject(path, value, self) if value.dtype.hasobject else value
        if isinstance(value, (list, tuple, set, frozenset)):
            parts = [self.validate(v, f"{path}[{i}]", validator) for i, v in enumerate(value)]
            # What is too much is left out as a whole: a part of it would be other data.
            kept = (part for part in parts if part is not REJECTED)
            return REJECTED if validator.spent else type(value)(kept)
        if not isinstance(value, Mapping):
            return validator.reject(path, value, self)
        entries = {}
        for key, inner in value.items():
            one = self.validate(inner, child_path(path, key), validator)
            named = validator.origin is Origin.USER or isinstance(key, (str, int))
            if one is not REJECTED and named:
                entries[key] = one
        return REJECTED if validator.spent else entries


@frozen(eq=False)
class Config(_Mapping):
    """A config inside the config: its keys have the rules of their names.

    Attributes:
        section: The section whose keys it has, "model" for example; empty: the top level's.
        raw: Whether Ray gets it as it is, so that only keys whose values are declared may stay.
    """

    section: str = ""
    raw: bool = False

    def describe(self) -> str:
        return f"a dict of keys of {f'`{self.section}`' if self.section else 'the config'}"

    def accept_plain(self, value: Any, path: str, validator: Validator) -> Any:
        if not self.matches(value) or validator.nested is None:
            return value if not value else validator.reject(path, value, self)
        return validator.nested(value, path, self.section, self.raw)


@frozen(eq=False)
class Policies(Kind):
    """The policies of a multi-agent config: names, or name → spec.

    A spec is a tuple of class, two spaces and a config of its own, a dict of the same, None, or a
    `PolicySpec`. The class never passes from a file.
    """

    name: Name
    cls: Kind
    space: Kind

    def describe(self) -> str:
        return "a list of policies, or a dict from each policy to its spec"

    def matches(self, value: object) -> bool:
        return isinstance(value, (Mapping, list, tuple, set, frozenset))

    def accept(self, value: Any, path: str, validator: Validator) -> Any:
        if not isinstance(value, Mapping):
            names = [self.name.validate(n, f"{path}[{i}]", validator) for i, n in enumerate(value)]
            return type(value)(n for n in names if n is not REJECTED)
        kept = {}
        for name, spec in value.items():
            where = child_path(path, name)
            named = self.name.validate(name, where, validator) is not REJECTED
            if named and validator.count(where, spec, self):
                kept[name] = self._spec(spec, where, validator)
        return kept

    def _spec(self, spec: object, path: str, validator: Validator) -> Any:
        kinds = {
            "policy_class": self.cls,
            "observation_space": self.space,
            "action_space": self.space,
            "config": Config(),
        }
        if isinstance(spec, (tuple, list)):
            pairs = enumerate(zip(spec[:4], kinds.values(), strict=False))
            return tuple(self._part(v, kind, f"{path}[{i}]", validator) for i, (v, kind) in pairs)
        if isinstance(spec, Mapping):
            return {
                name: self._part(spec[name], kind, f"{path}.{name}", validator)
                for name, kind in kinds.items()
                if name in spec
            }
        is_object = is_opaque(spec) and validator.origin is Origin.USER
        if spec is None or is_stand_in(spec) or is_object:
            return spec  # the rule knows that a record is no class
        return self._part(spec, self.cls, path, validator)

    def _part(self, value: object, kind: Kind, path: str, validator: Validator) -> Any:
        kept = value if is_stand_in(value) else kind.validate(value, path, validator)
        return None if kept is REJECTED else kept


@frozen(eq=False)
class Space(Kind):
    """A space: an object of gym or gymnasium, a record of one, or its `repr`."""

    def describe(self) -> str:
        return "a space, or its text like `Box(-1.0, 1.0, (4,), float32)`"

    def accept(self, value: object, path: str, validator: Validator) -> Any:
        if validator.origin is Origin.USER:
            return value  # the rule reads it, and says what it can't read
        if isinstance(value, str):
            record = parse_repr(value) if len(value) <= LONGEST_REPR else None
        else:
            record = value if isinstance(value, spaces.Space) else None
        if record is None:
            return validator.reject(path, value, self)
        if record.flat_size() > LARGEST_SPACE:
            detail = f"it has more than {LARGEST_SPACE:,} numbers"
            return validator.reject(path, value, self, detail)
        return record

    def validate(self, value: object, path: str, validator: Validator) -> Any:
        """Records of spaces and gym's own objects are no plain data, and welcome."""
        if not isinstance(value, spaces.Space):
            return super().validate(value, path, validator)
        if not validator.count(path, value, self):
            return REJECTED
        return self.accept(value, path, validator)


@frozen(eq=False)
class Layers(Kind):
    """The sizes of dense layers, one after another.

    Attributes:
        most: The largest size that a file may ask for.
        weights: How many weights two neighbours may have together, for a file.
    """

    most: int = 65_536
    weights: int = 2**26

    def describe(self) -> str:
        return "a list of layer sizes (whole numbers from 1 on)"

    def matches(self, value: object) -> bool:
        return isinstance(value, (list, tuple))

    def accept(self, value: Any, path: str, validator: Validator) -> Any:
        if not all(type(size) is int and size > 0 for size in value):
            return validator.reject(path, value, self)
        made = sum(a * b for a, b in pairwise(value))
        large = max(value, default=0) > self.most or made > self.weights or len(value) > 256
        if validator.origin is Origin.FILE and large:
            detail = f"they have more than {self.weights:,} weights"
            return validator.reject(path, value, self, detail)
        return value
