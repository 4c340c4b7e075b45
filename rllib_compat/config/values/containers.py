"""What the value of a legacy key may be: the kinds that hold other values."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from math import inf
from typing import Any

import numpy as np

from rllib_compat.config.values.door import OUT, Door, Origin, child, is_opaque
from rllib_compat.config.values.kinds import Kind
from rllib_compat.neutral import spaces
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.policy_id import why_unsafe
from rllib_compat.neutral.records import is_stand_in
from rllib_compat.neutral.space_text import parse_repr

#: The longest name of a resource or a policy.
LONGEST_NAME = 200
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

    def describe(self) -> str:  # noqa: D102
        length = f"{self.least} to {self.most} of: " if self.most < inf else ""
        return f"a list ({length}{self.item.describe()})"

    def suits(self, value: Any) -> bool:  # noqa: D102
        return isinstance(value, (list, tuple, set, frozenset, np.ndarray))

    def take(self, value: Any, path: str, door: Door) -> Any:  # noqa: D102
        if not self.suits(value) or not self.least <= len(value) <= self.most:
            return door.refuse(path, value, self)
        entries = value.tolist() if isinstance(value, np.ndarray) else value
        taken = [self.item.admit(v, f"{path}[{i}]", door) for i, v in enumerate(entries)]
        if any(entry is OUT for entry in taken):
            return OUT
        return taken if isinstance(value, np.ndarray) else type(value)(taken)


@frozen(eq=False)
class Row(Kind):
    """A list whose entries have kinds of their own, by position. It passes whole."""

    items: tuple[Kind, ...]

    def describe(self) -> str:  # noqa: D102
        return f"[{'; '.join(kind.describe() for kind in self.items)}]"

    def suits(self, value: Any) -> bool:  # noqa: D102
        return isinstance(value, (list, tuple)) and len(value) == len(self.items)

    def take(self, value: Any, path: str, door: Door) -> Any:  # noqa: D102
        if not self.suits(value):
            return door.refuse(path, value, self)
        pairs = zip(self.items, value, strict=True)
        taken = [kind.admit(v, f"{path}[{i}]", door) for i, (kind, v) in enumerate(pairs)]
        return OUT if any(entry is OUT for entry in taken) else type(value)(taken)


@frozen(eq=False)
class Name(Kind):
    """A name that means something only to the config itself: of a policy, of a resource."""

    what: str

    def describe(self) -> str:  # noqa: D102
        return f"the name of {self.what}"

    def suits(self, value: Any) -> bool:  # noqa: D102
        return isinstance(value, str) and 0 < len(value) <= LONGEST_NAME and value.isprintable()

    def take(self, value: Any, path: str, door: Door) -> Any:  # noqa: D102
        if not self.suits(value):
            return door.refuse(path, value, self)
        # Ray keeps modules in folders that are called like their policies.
        why = why_unsafe(value) if door.origin is Origin.FILE else None
        return value if why is None else door.refuse(path, value, self, why)


@frozen(eq=False)
class Table(Kind):
    """A dict from names to values of one kind; entries pass one by one."""

    key: Name
    value: Kind

    def describe(self) -> str:  # noqa: D102
        return f"a dict from {self.key.describe()} to {self.value.describe()}"

    def suits(self, value: Any) -> bool:  # noqa: D102
        return isinstance(value, Mapping)

    def take(self, value: Any, path: str, door: Door) -> Any:  # noqa: D102
        if not self.suits(value):
            return door.refuse(path, value, self)
        taken = {}
        for key, inner in value.items():
            name = self.key.admit(key, child(path, key), door)
            one = OUT if name is OUT else self.value.admit(inner, child(path, key), door)
            if one is not OUT:
                taken[name] = one
        return taken


@frozen(eq=False)
class Fields(Kind):
    """A dict with known keys; entries pass one by one.

    Attributes:
        fields: Key → what it may hold.
        other: What other keys may hold; None: there are no others.
    """

    fields: Mapping[str, Kind]
    other: Kind | None = None

    def describe(self) -> str:  # noqa: D102
        if not self.fields and self.other is not None:
            return f"a dict of {self.other.describe()}"
        names = ", ".join(list(self.fields)[:8])
        return f"a dict of {names}" + (", …" if len(self.fields) > 8 or self.other else "")

    @property
    def code(self) -> bool:  # noqa: D102
        return any(kind.code for kind in self.fields.values())

    def suits(self, value: Any) -> bool:  # noqa: D102
        return isinstance(value, Mapping)

    def take(self, value: Any, path: str, door: Door) -> Any:  # noqa: D102
        if not self.suits(value):
            return door.refuse(path, value, self)
        taken = {}
        for key, inner in value.items():
            kind = self.fields.get(key, self.other) if isinstance(key, str) else self.other
            if kind is None:
                if door.origin is Origin.USER:  # an argument that some class of theirs may take
                    taken[key] = inner
                else:
                    door.refuse(child(path, key), inner, self, "a key that is not known here")
                continue
            one = kind.admit(inner, child(path, key), door)
            if one is not OUT:
                taken[key] = one
        return OUT if door.spent else taken


@frozen(eq=False)
class Data(Kind):
    """Plain data of any shape: numbers, text, switches, lists and dicts of them, arrays."""

    def describe(self) -> str:  # noqa: D102
        return "plain data (numbers, text, lists and dicts of them)"

    def take(self, value: Any, path: str, door: Door) -> Any:  # noqa: D102
        if isinstance(value, int) and value.bit_length() > 64:
            return door.refuse(path, value, self, "no number is that large")
        if isinstance(value, (str, bytes, bool, int, float, np.generic)):
            return value
        if isinstance(value, np.ndarray):
            return door.refuse(path, value, self) if value.dtype.hasobject else value
        if isinstance(value, (list, tuple, set, frozenset)):
            parts = [self.admit(v, f"{path}[{i}]", door) for i, v in enumerate(value)]
            # What is too much is left out as a whole: a part of it would be other data.
            return OUT if door.spent else type(value)(part for part in parts if part is not OUT)
        if not isinstance(value, Mapping):
            return door.refuse(path, value, self)
        taken = {}
        for key, inner in value.items():
            one = self.admit(inner, child(path, key), door)
            if one is not OUT and (door.origin is Origin.USER or isinstance(key, (str, int))):
                taken[key] = one
        return OUT if door.spent else taken


@frozen(eq=False)
class Config(Kind):
    """A config inside the config: its keys have the rules of their names.

    Attributes:
        section: The section whose keys it has, "model" for example; empty: the top level's.
        raw: Whether Ray gets it as it is, so that only keys whose values are declared may stay.
    """

    section: str = ""
    raw: bool = False

    def describe(self) -> str:  # noqa: D102
        return f"a dict of keys of {f'`{self.section}`' if self.section else 'the config'}"

    def suits(self, value: Any) -> bool:  # noqa: D102
        return isinstance(value, Mapping)

    def take(self, value: Any, path: str, door: Door) -> Any:  # noqa: D102
        if not self.suits(value) or door.nested is None:
            return value if not value else door.refuse(path, value, self)
        return door.nested(value, path, self.section, self.raw)


@frozen(eq=False)
class Policies(Kind):
    """The policies of a multi-agent config: names, or name → spec.

    A spec is a tuple of class, two spaces and a config of its own, a dict of the same, None, or a
    `PolicySpec`. The class never passes from a file.
    """

    name: Name
    cls: Kind
    space: Kind

    def describe(self) -> str:  # noqa: D102
        return "a list of policies, or a dict from each policy to its spec"

    def suits(self, value: Any) -> bool:  # noqa: D102
        return isinstance(value, (Mapping, list, tuple, set, frozenset))

    def take(self, value: Any, path: str, door: Door) -> Any:  # noqa: D102
        if not self.suits(value):
            return door.refuse(path, value, self)
        if not isinstance(value, Mapping):
            names = [self.name.admit(n, f"{path}[{i}]", door) for i, n in enumerate(value)]
            return type(value)(n for n in names if n is not OUT)
        taken = {}
        for name, spec in value.items():
            where = child(path, name)
            if self.name.admit(name, where, door) is not OUT and door.step(where, spec, self):
                taken[name] = self._spec(spec, where, door)
        return taken

    def _spec(self, spec: Any, path: str, door: Door) -> Any:
        kinds = (self.cls, self.space, self.space, Config())
        if isinstance(spec, (tuple, list)):
            pairs = zip(spec[:4], kinds, strict=False)
            return tuple(self._part(v, k, f"{path}[{i}]", door) for i, (v, k) in enumerate(pairs))
        if isinstance(spec, Mapping):
            names = ("policy_class", "observation_space", "action_space", "config")
            return {
                n: self._part(spec[n], k, f"{path}.{n}", door)
                for n, k in zip(names, kinds, strict=True)
                if n in spec
            }
        if spec is None or is_stand_in(spec) or (is_opaque(spec) and door.origin is Origin.USER):
            return spec  # the rule knows that a record is no class
        return self._part(spec, self.cls, path, door)

    def _part(self, value: Any, kind: Kind, path: str, door: Door) -> Any:
        taken = value if is_stand_in(value) else kind.admit(value, path, door)
        return None if taken is OUT else taken


@frozen(eq=False)
class SpaceOf(Kind):
    """A space: an object of gym or gymnasium, a record of one, or its `repr`."""

    def describe(self) -> str:  # noqa: D102
        return "a space, or its text like `Box(-1.0, 1.0, (4,), float32)`"

    def take(self, value: Any, path: str, door: Door) -> Any:  # noqa: D102
        if door.origin is Origin.USER:
            return value  # the rule reads it, and says what it can't read
        if isinstance(value, str):
            record = parse_repr(value) if len(value) <= LONGEST_REPR else None
        else:
            record = value if isinstance(value, spaces.Space) else None
        if record is None:
            return door.refuse(path, value, self)
        if record.flat_size() > LARGEST_SPACE:
            return door.refuse(path, value, self, f"it has more than {LARGEST_SPACE:,} numbers")
        return record

    def admit(self, value: Any, path: str, door: Door) -> Any:
        """Records of spaces and gym's own objects are no plain data, and welcome."""
        if isinstance(value, spaces.Space):
            return self.take(value, path, door) if door.step(path, value, self) else OUT
        return super().admit(value, path, door)


@frozen(eq=False)
class Layers(Kind):
    """The sizes of dense layers, one after another.

    Attributes:
        most: The largest size that a file may ask for.
        weights: How many weights two neighbours may have together, for a file.
    """

    most: int = 65_536
    weights: int = 2**26

    def describe(self) -> str:  # noqa: D102
        return "a list of layer sizes (whole numbers from 1 on)"

    def suits(self, value: Any) -> bool:  # noqa: D102
        return isinstance(value, (list, tuple))

    def take(self, value: Any, path: str, door: Door) -> Any:  # noqa: D102
        if not self.suits(value) or not all(type(size) is int and size > 0 for size in value):
            return door.refuse(path, value, self)
        made = sum(a * b for a, b in pairwise(value))
        if door.origin is Origin.FILE and (
            max(value, default=0) > self.most or made > self.weights or len(value) > 256
        ):
            return door.refuse(path, value, self, f"they have more than {self.weights:,} weights")
        return value
