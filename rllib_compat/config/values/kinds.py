"""What the value of a legacy key may be: the kinds that hold one thing.

A rule declares its value with one of these (`Rule.value`). A declaration is used twice: for a
config that somebody wrote for this run it gives good errors, and for a config that came with a
checkpoint it is the border. There, only what fits passes; text passes only as one of the words
that are written here, and code never does.

`Kind.admit` returns the value that passes, or `OUT`; what is wrong is told to the `Door`.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from math import inf, isfinite, isnan
from numbers import Integral, Real
from typing import Any

import numpy as np

from rllib_compat.config.values.door import OUT, Door, Misfit, Origin, is_inert, is_opaque
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.records import is_stand_in

#: Text that is longer is no word of any list.
LONGEST_WORD = 200


@frozen(eq=False)
class Kind(ABC):
    """One way to say what a value may be. `None` fits every kind: the key was left alone."""

    @abstractmethod
    def describe(self) -> str:
        """What fits, as the end of the sentence "it may be …"."""

    @abstractmethod
    def take(self, value: Any, path: str, door: Door) -> Any:
        """What of a value passes: all, a part, or `OUT`. It is not None, and nothing inert."""

    def suits(self, value: Any) -> bool:
        """Whether a value has the shape of this kind, so that its parts are worth a look."""
        del value
        return True

    @property
    def code(self) -> bool:
        """Whether it may be a class or a function, so that `trust` can let one pass."""
        return False

    def admit(self, value: Any, path: str, door: Door) -> Any:
        """What of a value passes the door; what does not is told to it.

        Args:
            value: The value.
            path: Where it stands, for example `$.model.fcnet_hiddens[1]`.
            door: The door, which knows where the value is from.
        """
        if not door.step(path, value, self):
            return OUT
        if value is None:
            return None
        if is_inert(value):
            return self.take_inert(value, path, door)
        if door.origin is Origin.USER and is_opaque(value):
            return value
        if isinstance(value, Mapping) and set(value) == {"grid_search"}:
            return self._grid(value["grid_search"], path, door)
        return self.take(value, path, door)

    def take_inert(self, value: Any, path: str, door: Door) -> Any:
        """What passes of a record of code (or of its `repr`): nothing, unless it is trusted."""
        return door.inert(path, value, self)

    def _grid(self, alternatives: Any, path: str, door: Door) -> Any:
        """A grid search: the alternatives that pass."""
        if not isinstance(alternatives, (list, tuple)):
            return door.refuse(path, alternatives, self)
        passed = [self.admit(one, f"{path}[{i}]", door) for i, one in enumerate(alternatives)]
        kept = [one for one in passed if one is not OUT]
        return {"grid_search": kept} if kept or not alternatives else OUT

    def fits(self, value: Any, origin: Origin = Origin.USER) -> Misfit | None:
        """The first thing about a value that does not fit; None if all of it does."""
        door = Door(origin)
        self.admit(value, "$", door)
        return door.misfits[0] if door.misfits else None

    def __or__(self, other: Kind) -> OneOf:
        """Either of two kinds."""
        return OneOf((*_alternatives(self), *_alternatives(other)))


def _alternatives(kind: Kind) -> tuple[Kind, ...]:
    return kind.kinds if isinstance(kind, OneOf) else (kind,)


@frozen(eq=False)
class OneOf(Kind):
    """The first of several kinds that a value suits."""

    kinds: tuple[Kind, ...]

    def describe(self) -> str:  # noqa: D102
        *most, last = (kind.describe() for kind in self.kinds)
        return f"{', '.join(most)} or {last}"

    @property
    def code(self) -> bool:  # noqa: D102
        return any(kind.code for kind in self.kinds)

    def suits(self, value: Any) -> bool:  # noqa: D102
        return any(kind.suits(value) for kind in self.kinds)

    def take(self, value: Any, path: str, door: Door) -> Any:  # noqa: D102
        for kind in self.kinds:
            if kind.suits(value):
                return kind.take(value, path, door)
        return door.refuse(path, value, self)

    def take_inert(self, value: Any, path: str, door: Door) -> Any:  # noqa: D102
        for kind in self.kinds:
            if isinstance(kind, Words) and kind.of_class(value) is not None:
                return kind.of_class(value)
        return door.inert(path, value, self)


class Scalar(Kind):
    """A kind whose values have no parts: they fit as a whole, or not at all."""

    def take(self, value: Any, path: str, door: Door) -> Any:  # noqa: D102
        return value if self.suits(value) else door.refuse(path, value, self)


@frozen(eq=False)
class Flag(Scalar):
    """A switch; 0 and 1 count as one."""

    def describe(self) -> str:  # noqa: D102
        return "true or false"

    def suits(self, value: Any) -> bool:  # noqa: D102
        return self._read(value) is not None

    def take(self, value: Any, path: str, door: Door) -> Any:  # noqa: D102
        read = self._read(value)
        return door.refuse(path, value, self) if read is None else read

    def _read(self, value: Any) -> Any:
        if isinstance(value, (bool, np.bool_)) or (type(value) is int and value in (0, 1)):
            return value
        # YAML makes text of `true,`. The text "false" was true to every Ray: better to ask.
        true = isinstance(value, str) and len(value) < 10 and value.strip(" ,").lower() == "true"
        return True if true else None


@frozen(eq=False)
class Number(Kind):
    """A number in a range.

    Attributes:
        low: The least.
        high: The greatest.
        infinite: Whether infinity counts as "no limit". NaN never fits.
        ample: More than this is not believed to a file: it is something that is made when the
            config is used (environments, processes, entries of a buffer).
    """

    low: float = -inf
    high: float = inf
    infinite: bool = False
    ample: float | None = None

    noun = "a number"

    def describe(self) -> str:  # noqa: D102
        if self.low > -inf and self.high < inf:
            return f"{self.noun} from {self.low:g} to {self.high:g}"
        if self.low > -inf:
            return f"{self.noun} from {self.low:g} on"
        return self.noun

    def suits(self, value: Any) -> bool:  # noqa: D102
        number = self._read(value)
        if isinstance(number, (bool, np.bool_)) or not isinstance(number, Real):
            return False
        if isinstance(number, Integral):
            # Python's integers have no bounds, but today's Ray keeps them in 64 bits.
            return bool(self.low <= int(number) <= self.high and -(2**63) <= int(number) < 2**64)
        if isnan(number) or not (self.infinite or isfinite(number)):
            return False
        return bool(self.low <= float(number) <= self.high)

    def take(self, value: Any, path: str, door: Door) -> Any:  # noqa: D102
        if not self.suits(value):
            return door.refuse(path, value, self)
        value = self._read(value)
        if door.origin is Origin.FILE and self.ample is not None and value > self.ample:
            return door.refuse(path, value, self, f"a file may ask for {self.ample:,.0f} at most")
        return value

    def _read(self, value: Any) -> Any:
        """A number that YAML 1.1 takes for text, as `1e-6` without a point; else the value."""
        is_text = isinstance(value, str) and len(value) < 25
        return float(value) if is_text and _EXPONENT.fullmatch(value) else value


_EXPONENT = re.compile(r"[-+]?\d+[eE][-+]?\d+")


@frozen(eq=False)
class Whole(Number):
    """A whole number in a range; 1e6 is one, too."""

    noun = "a whole number"

    def suits(self, value: Any) -> bool:  # noqa: D102
        if not super().suits(value):
            return False
        number = self._read(value)
        return isinstance(number, Integral) or float(number).is_integer()


@frozen(eq=False)
class Words(Kind):
    """One of some words.

    Attributes:
        words: The words.
        also: Other spellings that some Ray had → the word.
        classes: Whether a class of RLlib that is called like a word counts as the word.
    """

    words: tuple[str, ...]
    also: Mapping[str, str] | None = None
    classes: bool = False

    def describe(self) -> str:  # noqa: D102
        quoted = [f'"{word}"' for word in self.words]
        return quoted[0] if len(quoted) == 1 else f"one of {', '.join(quoted)}"

    def suits(self, value: Any) -> bool:  # noqa: D102
        return self._canonical(value) is not None

    def take(self, value: Any, path: str, door: Door) -> Any:  # noqa: D102
        # What passes is the text that is written in the rule, never the one from the file.
        word = self._canonical(value)
        return door.refuse(path, value, self) if word is None else word

    def take_inert(self, value: Any, path: str, door: Door) -> Any:  # noqa: D102
        word = self.of_class(value)
        return door.inert(path, value, self) if word is None else word

    def _canonical(self, value: Any) -> str | None:
        if not isinstance(value, str) or len(value) > LONGEST_WORD:
            return None
        word = (self.also or {}).get(value, value)
        return next((known for known in self.words if known == word), None)

    def of_class(self, value: Any) -> str | None:
        """The word that a record of one of RLlib's own classes stands for."""
        if not self.classes:
            return None
        name = value.qualified if is_stand_in(value) else str(value)[:LONGEST_WORD]
        name = name.removeprefix("<class '").removesuffix("'>")
        return self._canonical(name.rpartition(".")[2]) if name.startswith("ray.rllib.") else None


@frozen(eq=False)
class Yours(Kind):
    """What only the people who run it can give: code, paths, arguments of their own code.

    From a file nothing of it passes, not even as text; `trust` lets exact names of code pass.

    Attributes:
        what: What it is.
        types: The plain types that it may have; other objects always fit.
        names_code: Whether text names a class or a function.
    """

    what: str
    types: tuple[type, ...]
    names_code: bool = False

    def describe(self) -> str:  # noqa: D102
        return self.what

    @property
    def code(self) -> bool:  # noqa: D102
        return self.names_code

    def suits(self, value: Any) -> bool:  # noqa: D102
        return isinstance(value, self.types) or is_opaque(value)

    def take(self, value: Any, path: str, door: Door) -> Any:  # noqa: D102
        if isinstance(value, (str, dict, list, tuple, set, frozenset)) and not value:
            return value
        if door.origin is Origin.FILE:
            return door.own(path, value, self)
        return value if self.suits(value) else door.refuse(path, value, self)


@frozen(eq=False)
class Unread(Kind):
    """The value of a key that no longer sets anything: whatever it is, nobody looks at it."""

    def describe(self) -> str:  # noqa: D102
        return "anything: nothing reads it any more"

    def take(self, value: Any, path: str, door: Door) -> Any:  # noqa: ARG002, D102
        return door.unread(value)
