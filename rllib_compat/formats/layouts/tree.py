"""A Checkpointable tree as data: the state of each of its components, whatever they are.

`v2` reads of a tree what a conversion needs; this reads all states of it, for a trainer that goes
on where it stopped. What makes objects (`class_and_ctor_args.pkl`) is left alone.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rllib_compat.formats.layouts.folder import Folder
from rllib_compat.formats.layouts.v2 import STEMS, list_folders
from rllib_compat.neutral.budget import Budget, budget_error
from rllib_compat.neutral.check import DEEPEST, check_values
from rllib_compat.neutral.errors import CheckpointError, CorruptCheckpointError
from rllib_compat.neutral.records import StandIn, is_stand_in

_PLAIN = (type(None), bool, int, float, complex, str, bytes, np.dtype)

Makers = Mapping[str, Callable[[Mapping[str, Any]], Any]]


def is_tree(path: Path) -> bool:
    """Whether a folder is an algorithm's Checkpointable tree, judged by the names in it."""
    return (
        any((path / f"algorithm_state{end}").is_file() for end in (".pkl", ".msgpack"))
        and (path / "learner_group").is_dir()
    )


def read_states(
    path: Path,
    makers: Makers | None = None,
    *,
    unless_code: Collection[str] = (),
    budget: Budget | None = None,
) -> dict[str, Any]:
    """Reads the state of every component of a tree.

    `makers` make known objects of their attributes, by dotted name. Values of the keys
    `unless_code` are left out where they are code.

    Returns:
        Plain data by the state's file, without its ending: `learner_group/learner/state`, ….

    Raises:
        CheckpointError: A state holds something that is no data; the error says what and where.
        CorruptCheckpointError: A file is damaged.
        BudgetExceededError: It expands to more than the budget allows.
    """
    folder = Folder(path, budget or Budget())
    return {
        stem: as_data(value, stem, folder.budget, makers, unless_code)
        for name in list_folders(folder)
        for stem, value in _read_folder(folder, name)
    }


def as_data(
    value: object,
    where: str,
    budget: Budget,
    makers: Makers | None = None,
    unless_code: Collection[str] = (),
) -> Any:
    """A copy of a value that holds nothing but data, and that others may walk through.

    Raises:
        CheckpointError: There is something else in it.
        BudgetExceededError: It expands to more than the budget allows.
    """
    copy = _Copier(makers or {}, unless_code, where, budget).copy(value)
    check_values(copy, budget, where)
    return copy


def _read_folder(folder: Folder, name: str) -> list[tuple[str, Any]]:
    """The states in one folder, by their files without endings."""
    stems = [f"{name}/{stem}".lstrip("/") for stem in STEMS]
    files = [(stem, folder.state_file(stem)) for stem in stems]
    return [(stem, folder.read(file)) for stem, file in files if file is not None]


class _Copier:
    """Makes sure that a value is data, and copies it; see `read_states`."""

    def __init__(
        self, makers: Makers, unless_code: Collection[str], where: str, budget: Budget
    ) -> None:
        self._makers = makers
        self._unless_code = unless_code
        self._where = where
        self._budget = budget
        self._path: list[Any] = []  # keys and numbers; they may be long, so only errors show them
        self._made: dict[int, tuple[Any, Any]] = {}  # shared values are copied once
        self._open: set[int] = set()

    def copy(self, value: object) -> Any:
        """A copy of a value.

        Raises:
            CheckpointError: There is something else than data in it.
            BudgetExceededError: It is nested too deeply, or copies of it would be too large.
        """
        if isinstance(value, _PLAIN):
            return value
        if id(value) in self._made:
            return self._made[id(value)][1]
        if id(value) in self._open:
            raise CorruptCheckpointError("A value contains itself.", where=self._place())
        if len(self._open) > DEEPEST:
            raise budget_error("depth", self._place())
        self._open.add(id(value))
        made = self._copy_container(value)
        self._open.discard(id(value))
        self._made[id(value)] = value, made
        return made

    def _copy_container(self, value: object) -> Any:
        if isinstance(value, (np.ndarray, np.generic)) and not value.dtype.hasobject:
            self._budget.spend("unfolded", value.nbytes, self._where)  # many may share their bytes
            return value.copy()
        if isinstance(value, (memoryview, bytearray)):
            self._budget.spend("unfolded", len(value), self._where)
            return bytes(value)
        if isinstance(value, Mapping):
            kind = OrderedDict if isinstance(value, OrderedDict) else dict
            lost = {k for k, v in value.items() if k in self._unless_code and is_stand_in(v)}
            kept = ((k, v) for k, v in value.items() if k not in lost)
            return kind((self.copy(k), self._copy_part(k, v)) for k, v in kept)
        if isinstance(value, (list, tuple, set, frozenset)):
            parts = (self._copy_part(i, v) for i, v in enumerate(value))
            return next(k for k in (list, tuple, set, frozenset) if isinstance(value, k))(parts)
        if isinstance(value, deque):
            return deque((self._copy_part("…", v) for v in value), value.maxlen)
        if isinstance(value, StandIn) and value.qualified in self._makers:
            return self._make_object(value)
        raise CheckpointError(
            f"The state contains {_describe(value)}, which is code and not data.",
            where=self._place(),
            fix="If you trust the file, pass trusted=True: restore(path, trusted=True). Ray then "
            "loads it, and executes all code in it.",
        )

    def _copy_part(self, key: object, value: object) -> Any:
        self._path.append(key)
        made = self.copy(value)
        self._path.pop()
        return made

    def _place(self) -> str:
        """Where the copying is, for errors."""
        keys = (f"[{k}]" if isinstance(k, int) else f".{str(k)[:60]}" for k in self._path)
        return f"{self._where} ${''.join(keys)}"

    def _make_object(self, value: StandIn) -> Any:
        attributes = self.copy(value.state)
        try:
            return self._makers[value.qualified](attributes)
        except TypeError as error:
            raise CorruptCheckpointError(
                f"The attributes of {value.label} are not its own: {error}.", where=self._place()
            ) from error


def _describe(value: object) -> str:
    return repr(value) if is_stand_in(value) else f"a value of type {type(value).__name__}"
