"""What holds the values of a config against their declarations, and lists what does not fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from numbers import Number
from typing import Any, Protocol

import numpy as np

from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.records import GlobalRef, is_stand_in, modules_in

#: So many values a config from a file may have in all, each counted as often as it is named.
MOST_VALUES = 20_000
#: And so many that a person wrote: only a config without end has more.
MOST_VALUES_OF_USER = 10_000_000
DEEPEST = 64
#: Of a class or function, dots included.
LONGEST_NAME_OF_CODE = 300
#: So many problems are listed one by one.
MOST_LISTED = 1000

_PLAIN = (
    *(type(None), bool, str, bytes, Number, Mapping, list, tuple, set, frozenset),
    *(np.generic, np.ndarray),
)


class Origin(Enum):
    """Where a config is from."""

    #: Somebody wrote it for this run: code is welcome in it.
    USER = "the user"
    #: It came with a checkpoint, or is another file of unknown making: data, and nothing else.
    FILE = "a file"


class _Rejected:
    """The mark of a value that did not pass."""

    def __repr__(self) -> str:
        return "REJECTED"


class Reason(Enum):
    """Why a value did not pass."""

    #: It is not what the key takes.
    WRONG = "wrong"
    #: It is a record of code, which is not run.
    RECORD = "record"
    #: It is a record of a class of RLlib itself, of which every Ray has its own.
    RLLIB = "rllib"
    #: It is a record of a class of this package, which is created again.
    OURS = "ours"
    #: It would be right if the user had given it.
    USER_ONLY = "user only"


REJECTED = _Rejected()
#: The packages that the bases of classes of this package belong to.
_OWN_PACKAGES = {"rllib_compat", "ray", "abc", "builtins"}
#: The placeholder for a value that nothing reads: not empty, and equal to no default.
UNREAD_VALUE = "(not read)"


@frozen
class Problem:
    """A value that does not fit its declaration.

    Attributes:
        path: Its path.
        found: What was found there, in a few words.
        expected: What is allowed there.
        reason: Why it did not pass.
        detail: What is wrong, where its kind is right.
        trust: The exact name that would have to be trusted for it to pass, where there is one.
    """

    path: str
    found: str
    expected: str
    reason: Reason = Reason.WRONG
    detail: str = ""
    trust: str = ""


class Declaration(Protocol):
    """What the validator asks of a kind."""

    @property
    def code(self) -> bool:
        """Whether a class or a function fits, so that `trust` can let one pass."""
        ...

    def describe(self) -> str:
        """What fits, as the end of the sentence "it may be …"."""
        ...


@dataclass
class Validator:
    """Decides which values pass, by where they are from.

    Attributes:
        origin: Where they are from.
        trust: Exact names of classes and functions, `module:Class`, that may pass from a file.
        problems: What did not pass, in order.
        trusted: What passed because it is in `trust`: path and name.
        unlisted: How many did not pass beyond those in `problems`.
        nested: Validates a config inside the config by the rules of its keys: of the dict, its
            path, the section that it is, whether Ray gets it as it is.
        was_default: Whether a Ray had put a value there by itself.
    """

    origin: Origin
    trust: frozenset[str] = frozenset()
    problems: list[Problem] = field(default_factory=list)
    trusted: list[tuple[str, str]] = field(default_factory=list)
    nested: Callable[[Mapping[Any, Any], str, str, bool], dict[str, Any]] | None = None
    was_default: Callable[[Any], bool] = lambda _: False
    unlisted: int = 0
    _values: int = 0
    _rejections: int = 0

    @property
    def spent(self) -> bool:
        """Whether there are more values than any config has."""
        most = MOST_VALUES if self.origin is Origin.FILE else MOST_VALUES_OF_USER
        return self._values > most

    def count(self, path: str, value: object, kind: Declaration) -> bool:
        """Counts a value; False where there are more, or deeper ones, than any config has."""
        was_spent = self.spent
        self._values += 1
        if not self.spent and path.count(".") + path.count("[") <= DEEPEST:
            return True
        if not self.spent:
            self.reject(path, value, kind, "no config is so deep, unless it contains itself")
        elif not was_spent:
            self.reject(path, value, kind, "no config has so many values")
        return False

    def reject(self, path: str, value: object, kind: Declaration, detail: str = "") -> Any:
        """Notes a value that does not fit."""
        return self._note(path, value, kind, Reason.WRONG, detail)

    def reject_from_file(self, path: str, value: object, kind: Declaration) -> Any:
        """Notes a value that only the user may give; exact names in `trust` pass."""
        return self._unless_trusted(path, value, kind, Reason.USER_ONLY)

    def reject_record(self, path: str, value: Any, kind: Declaration) -> Any:
        """Notes a record of code, which is not run; exact names in `trust` pass."""
        name = value.qualified if is_stand_in(value) else value.removeprefix("<class '")
        packages = {module.partition(".")[0] for module in modules_in(value)}
        if "rllib_compat" in packages and packages <= _OWN_PACKAGES:
            reason = Reason.OURS
        else:
            reason = Reason.RLLIB if name.startswith("ray.rllib.") else Reason.RECORD
        return self._unless_trusted(path, value, kind, reason)

    def leave_unread(self, value: object) -> Any:
        """A value that nothing reads: only whether it is a default, or empty, may matter."""
        if self.origin is Origin.USER or self.was_default(value):
            return value
        is_empty = isinstance(value, (str, Mapping, list, tuple, set)) and not value
        return value if is_empty or isinstance(value, (bool, np.bool_)) else UNREAD_VALUE

    def _unless_trusted(self, path: str, value: object, kind: Declaration, reason: Reason) -> Any:
        name = _name_of_code(value) if kind.code else ""
        if name not in self.trust:
            return self._note(path, value, kind, reason, trust=name)
        self.trusted.append((path, name))
        return name.replace(":", ".")

    def _note(
        self,
        path: str,
        value: object,
        kind: Declaration,
        reason: Reason,
        detail: str = "",
        trust: str = "",
    ) -> Any:
        self._rejections += 1
        if self._rejections <= MOST_LISTED or self.origin is Origin.USER:
            found = shorten(value)
            self.problems.append(Problem(path, found, kind.describe(), reason, detail, trust))
        else:
            self.unlisted += 1
        return REJECTED


def _name_of_code(value: object) -> str:
    """What a text or a record names, as `module:Class`; nothing where it is no such name."""
    if isinstance(value, GlobalRef):
        module, name = value.module, value.name
    elif isinstance(value, str) and len(value) <= LONGEST_NAME_OF_CODE:
        module, _, name = value.rpartition(":" if ":" in value else ".")
    else:
        return ""
    is_name = module and all(part.isidentifier() for part in f"{module}.{name}".split("."))
    return f"{module}:{name}" if is_name else ""


def is_record(value: object) -> bool:
    """Whether a value is a record of code, or the text that JSON files have in its place."""
    return is_stand_in(value) or (
        isinstance(value, str) and value.startswith("<") and value.endswith(">")
    )


def is_opaque(value: object) -> bool:
    """Whether a value is neither data nor a record: a class, a function, a search space of Tune.

    A Dict space is one, although gymnasium's is a mapping.
    """
    if isinstance(value, Mapping) and hasattr(value, "sample") and hasattr(value, "contains"):
        return True
    return not (isinstance(value, _PLAIN) or is_stand_in(value))


def shorten(value: Any) -> str:
    """A value in at most some sixty characters, whatever it is."""
    if is_stand_in(value):
        text = str(value.label)
    elif isinstance(value, str):
        text = repr(value[:61])
    elif isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 128:
        return f"a number of {value.bit_length():,} bits"
    elif value is None or isinstance(value, (bool, Number)):
        text = repr(value)
    elif isinstance(value, (Mapping, list, tuple, set, frozenset, bytes)):
        kind = type(value).__name__
        return f"a {kind} of {len(value)}" if value else f"an empty {kind}"
    elif isinstance(value, np.ndarray):
        return f"an array of shape {value.shape}"
    else:
        text = str(getattr(value, "__qualname__", "")) or f"a {type(value).__name__}"
    return text if len(text) <= 62 else text[:59] + "…" + text[-1]


def child_path(path: str, key: object) -> str:
    """The path of a key of a dict."""
    return f"{path}.{key}" if isinstance(key, str) and len(key) < 80 else f"{path}[{shorten(key)}]"
