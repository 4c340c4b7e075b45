"""What the value of a legacy key may be: the kinds that hold one thing.

A rule declares its value with one of these (`Rule.value`). A declaration is used twice: for a
config that somebody wrote for this run it gives good errors, and of a config that came with a
checkpoint only what fits passes. From there, text passes only as one of the words that are written
here, and code never does.

`Kind.validate` returns the value that passes, or `REJECTED`; the `Validator` lists what is wrong.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from math import inf, isfinite, isnan
from numbers import Integral, Real
from typing import Any

import numpy as np

from rllib_compat.config.values.validator import (
    REJECTED,
    Origin,
    Problem,
    Validator,
    is_opaque,
    is_record,
)
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.policy_id import why_unsafe
from rllib_compat.neutral.records import is_stand_in

#: Text that is longer is no word of any list.
LONGEST_WORD = 200
#: The longest name of an environment, a resource or a policy.
LONGEST_NAME = 200


@frozen(eq=False)
class Kind(ABC):
    """One way to say what a value may be. `None` fits every kind: the key was left alone."""

    @abstractmethod
    def describe(self) -> str:
        """What fits, as the end of the sentence "it may be …"."""

    @property
    def code(self) -> bool:
        """Whether it may be a class or a function, so that `trust` can let one pass."""
        return False

    def matches(self, value: object) -> bool:
        """Whether a value has the shape of this kind, so that its parts are worth a look."""
        del value
        return True

    def accept(self, value: object, path: str, validator: Validator) -> Any:
        """What of a value that matches passes: all, a part, or `REJECTED`."""
        del path, validator
        return value

    def accept_record(self, value: object, path: str, validator: Validator) -> Any:
        """What of a record of code (or of its `repr`) passes: nothing, unless it is trusted."""
        return validator.reject_record(path, value, self)

    def validate(self, value: object, path: str, validator: Validator) -> Any:
        """What of a value passes; the validator lists what does not, by its path."""
        if not validator.count(path, value, self):
            return REJECTED
        if value is None:
            return None
        if is_record(value):
            return self.accept_record(value, path, validator)
        if validator.origin is Origin.USER and is_opaque(value):
            return value
        if isinstance(value, Mapping) and set(value) == {"grid_search"}:
            return self._grid(value["grid_search"], path, validator)
        return self.accept_plain(value, path, validator)

    def accept_plain(self, value: object, path: str, validator: Validator) -> Any:
        """What of a value passes that is not None, no record and no grid search."""
        if not self.matches(value):
            return validator.reject(path, value, self)
        return self.accept(value, path, validator)

    def _grid(self, alternatives: object, path: str, validator: Validator) -> Any:
        """A grid search: the alternatives that pass."""
        if not isinstance(alternatives, (list, tuple)):
            return validator.reject(path, alternatives, self)
        checked = [self.validate(v, f"{path}[{i}]", validator) for i, v in enumerate(alternatives)]
        kept = [one for one in checked if one is not REJECTED]
        return {"grid_search": kept} if kept or not alternatives else REJECTED

    def find_problem(self, value: object, origin: Origin = Origin.USER) -> Problem | None:
        """The first thing about a value that does not fit; None if all of it does."""
        validator = Validator(origin)
        self.validate(value, "$", validator)
        return validator.problems[0] if validator.problems else None

    def __or__(self, other: Kind) -> OneOf:
        """Either of two kinds."""
        return OneOf((*_alternatives(self), *_alternatives(other)))


def _alternatives(kind: Kind) -> tuple[Kind, ...]:
    return kind.kinds if isinstance(kind, OneOf) else (kind,)


@frozen(eq=False)
class OneOf(Kind):
    """The first of several kinds that a value matches."""

    kinds: tuple[Kind, ...]

    def describe(self) -> str:
        *most, last = (kind.describe() for kind in self.kinds)
        return f"{', '.join(most)} or {last}"

    @property
    def code(self) -> bool:
        return any(kind.code for kind in self.kinds)

    def matches(self, value: object) -> bool:
        return any(kind.matches(value) for kind in self.kinds)

    def accept(self, value: object, path: str, validator: Validator) -> Any:
        kind = next(kind for kind in self.kinds if kind.matches(value))
        return kind.accept_plain(value, path, validator)

    def accept_record(self, value: object, path: str, validator: Validator) -> Any:
        choices = (kind for kind in self.kinds if isinstance(kind, Choice))
        words = (kind.word_of_class(value) for kind in choices)
        word = next((word for word in words if word is not None), None)
        return validator.reject_record(path, value, self) if word is None else word


@frozen(eq=False)
class Flag(Kind):
    """A switch; 0 and 1 count as one, and what is empty is off, as it was to every Ray."""

    def describe(self) -> str:
        return "true or false"

    def matches(self, value: object) -> bool:
        return self._read(value) is not None

    def accept(self, value: object, path: str, validator: Validator) -> Any:  # noqa: ARG002
        return self._read(value)

    def _read(self, value: object) -> Any:
        if isinstance(value, (bool, np.bool_)) or (type(value) is int and value in (0, 1)):
            return value
        if isinstance(value, (str, list, tuple, dict)) and not value:
            return False
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
        max_from_file: The most that a file may ask for, where the number is of things that are made
            when the config is used (environments, processes, entries of a buffer).
    """

    low: float = -inf
    high: float = inf
    infinite: bool = False
    max_from_file: float | None = None

    noun = "a number"

    def describe(self) -> str:
        if self.low > -inf and self.high < inf:
            return f"{self.noun} from {self.low:g} to {self.high:,.12g}"
        return f"{self.noun} from {self.low:g} on" if self.low > -inf else self.noun

    def matches(self, value: object) -> bool:
        number = self._read(value)
        if isinstance(number, (bool, np.bool_)) or not isinstance(number, Real):
            return False
        if isinstance(number, Integral):
            # Python's integers have no bounds, but today's Ray keeps them in 64 bits.
            return bool(self.low <= int(number) <= self.high and -(2**63) <= int(number) < 2**64)
        if isnan(number) or not (self.infinite or isfinite(number)):
            return False
        return bool(self.low <= float(number) <= self.high)

    def accept(self, value: Any, path: str, validator: Validator) -> Any:
        value = self._read(value)
        if (
            validator.origin is Origin.FILE
            and self.max_from_file is not None
            and value > self.max_from_file
        ):
            detail = f"a file may ask for {self.max_from_file:,.0f} at most"
            return validator.reject(path, value, self, detail)
        return value

    def _read(self, value: Any) -> Any:
        """A number that YAML 1.1 takes for text, as `1e-6` without a point; else the value."""
        is_text = isinstance(value, str) and len(value) < 25
        return float(value) if is_text and _EXPONENT.fullmatch(value) else value


_EXPONENT = re.compile(r"[-+]?\d+[eE][-+]?\d+")


@frozen(eq=False)
class Integer(Number):
    """A whole number in a range; 1e6 is one, too."""

    noun = "a whole number"

    def matches(self, value: object) -> bool:
        if not super().matches(value):
            return False
        number = self._read(value)
        return isinstance(number, Integral) or float(number).is_integer()

    def accept(self, value: object, path: str, validator: Validator) -> Any:
        number = super().accept(value, path, validator)
        return int(number) if isinstance(number, (float, np.floating)) else number


@frozen(eq=False)
class Choice(Kind):
    """One of some words.

    Attributes:
        words: The words.
        also: Other spellings that some Ray had → the word.
        classes: Whether a class of RLlib that is called like a word counts as the word.
    """

    words: tuple[str, ...]
    also: Mapping[str, str] | None = None
    classes: bool = False

    def describe(self) -> str:
        quoted = [f'"{word}"' for word in self.words]
        return quoted[0] if len(quoted) == 1 else f"one of {', '.join(quoted)}"

    def matches(self, value: object) -> bool:
        return self._find(value) is not None

    def accept(self, value: object, path: str, validator: Validator) -> Any:  # noqa: ARG002
        # What passes is the text that is written in the rule, never the one from the file.
        return self._find(value)

    def accept_record(self, value: object, path: str, validator: Validator) -> Any:
        word = self.word_of_class(value)
        return validator.reject_record(path, value, self) if word is None else word

    def _find(self, value: object) -> str | None:
        if not isinstance(value, str) or len(value) > LONGEST_WORD:
            return None
        word = (self.also or {}).get(value, value)
        return next((known for known in self.words if known == word), None)

    def word_of_class(self, value: Any) -> str | None:
        """The word for a record of one of RLlib's own classes."""
        if not self.classes:
            return None
        name = value.qualified if is_stand_in(value) else str(value)[:LONGEST_WORD]
        name = name.removeprefix("<class '").removesuffix("'>")
        return self._find(name.rpartition(".")[2]) if name.startswith("ray.rllib.") else None


@frozen(eq=False)
class UserOnly(Kind):
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

    def describe(self) -> str:
        return self.what

    @property
    def code(self) -> bool:
        return self.names_code

    def matches(self, value: object) -> bool:
        return isinstance(value, self.types) or is_opaque(value)

    def accept_plain(self, value: object, path: str, validator: Validator) -> Any:
        if isinstance(value, (str, dict, list, tuple, set, frozenset)) and not value:
            return value
        if validator.origin is Origin.FILE:
            return validator.reject_from_file(path, value, self)
        return super().accept_plain(value, path, validator)


@frozen(eq=False)
class Unread(Kind):
    """The value of a key that no longer sets anything: whatever it is, nothing reads it."""

    def describe(self) -> str:
        return "anything: nothing reads it any more"

    def accept(self, value: object, path: str, validator: Validator) -> Any:  # noqa: ARG002
        return validator.leave_unread(value)


@frozen(eq=False)
class Name(Kind):
    """A name that means something only to the config itself: of a policy, of a resource."""

    what: str

    def describe(self) -> str:
        return f"the name of {self.what}"

    def matches(self, value: object) -> bool:
        return isinstance(value, str) and 0 < len(value) <= LONGEST_NAME and value.isprintable()

    def accept(self, value: object, path: str, validator: Validator) -> Any:
        # Ray keeps modules in folders that are called like their policies.
        why = why_unsafe(value) if validator.origin is Origin.FILE else None
        return value if why is None else validator.reject(path, value, self, why)


#: Environments of gymnasium whose arguments say which environment they make, modules included.
ENV_MAKERS = ("GymV21Environment-v0", "GymV26Environment-v0")
_PLAIN_ENV_NAME = re.compile(r"[\w -]+(?:/[\w -]+)?")


def is_plain_env_name(name: str) -> bool:
    """Whether a name of an environment is only a name: nothing that an import could come of."""
    if len(name) > LONGEST_NAME or name.rpartition("/")[2] in ENV_MAKERS:
        return False
    return _PLAIN_ENV_NAME.fullmatch(name) is not None


@frozen(eq=False)
class EnvName(Kind):
    """The name that an environment is registered under, with Tune or with gymnasium.

    A user may write `module:Class`, a path of a class or any other text. A name from a file is
    taken only if neither Ray nor gymnasium could import or open anything that it says: no dot, no
    colon, at most one namespace.
    """

    def describe(self) -> str:
        return "the name of a registered environment"

    def matches(self, value: object) -> bool:
        return isinstance(value, str)

    def accept(self, value: Any, path: str, validator: Validator) -> Any:
        if validator.origin is Origin.USER or is_plain_env_name(value):
            return value
        return validator.reject_from_file(path, value, _IMPORTED_ENV)


_IMPORTED_ENV = UserOnly("an environment that has to be imported", (str,), names_code=True)
