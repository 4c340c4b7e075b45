"""Weights move between naming schemes by tables, not by code.

A table is a tuple of `Move`s. Each names one array (or one family of arrays, with an index) on
either side and says what is done to it on the way. The same table is read in both directions,
so that a scheme which can be read can also be written. Names that no move takes, on either side,
are an error: nothing of a network is ever dropped or invented in silence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from rllib_compat.errors import CheckpointError

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

_PLACEHOLDER = re.compile(r"\{(?:(\d+)\*)?i(?:\+(\d+))?\}")


@dataclass(frozen=True)
class Name:
    """The name of an array, or of a family: `fc_{i+1}/kernel`, `mlp.{2*i}.weight`.

    Attributes:
        text: The name; at most one placeholder `{i}`, `{i+B}`, `{A*i}` or `{A*i+B}`.
    """

    text: str

    @cached_property
    def _parts(self) -> tuple[re.Pattern[str], int, int] | None:
        match = _PLACEHOLDER.search(self.text)
        if match is None:
            return None
        before, after = self.text[: match.start()], self.text[match.end() :]
        pattern = re.compile(re.escape(before) + r"(\d+)" + re.escape(after))
        return pattern, int(match[1] or 1), int(match[2] or 0)

    def index_of(self, name: str) -> int | None:
        """The index that makes this family give `name`; 0 for a plain equal name; else None."""
        if self._parts is None:
            return 0 if name == self.text else None
        pattern, factor, offset = self._parts
        match = pattern.fullmatch(name)
        if match is None:
            return None
        index, rest = divmod(int(match[1]) - offset, factor)
        return index if rest == 0 and index >= 0 else None

    def at(self, index: int) -> str:
        """The name at `index`."""
        if self._parts is None:
            return self.text
        _, factor, offset = self._parts
        return _PLACEHOLDER.sub(str(factor * index + offset), self.text)


@dataclass(frozen=True)
class Move:
    """One row of a table.

    Attributes:
        theirs: The name in the scheme that the table describes.
        ours: The name in the canonical form of the network.
        transpose: Whether a matrix is transposed on the way (torch keeps `[out, in]`).
    """

    theirs: str
    ours: str
    transpose: bool = False

    @cached_property
    def names(self) -> tuple[Name, Name]:
        """Both names, parsed."""
        return Name(self.theirs), Name(self.ours)


Table: TypeAlias = tuple[Move, ...]


def dense(theirs: str, ours: str, *, kernel: str, bias: str, transpose: bool) -> Table:
    """The two rows of a dense layer.

    Args:
        theirs: The layer's name in the scheme.
        ours: The layer's canonical name.
        kernel: What the scheme appends for the matrix.
        bias: What it appends for the bias.
        transpose: Whether the scheme's matrix is `[out, in]`.
    """
    return (
        Move(f"{theirs}{kernel}", f"{ours}.kernel", transpose),
        Move(f"{theirs}{bias}", f"{ours}.bias"),
    )


def to_canonical(table: Table, arrays: Mapping[str, Array]) -> tuple[dict[str, Array], list[str]]:
    """Renames the scheme's arrays to the canonical form.

    Returns:
        The canonical arrays, and the names that no row of the table takes.
    """
    taken: dict[str, Array] = {}
    left: list[str] = []
    for name, array in arrays.items():
        for move in table:
            theirs, ours = move.names
            index = theirs.index_of(name)
            if index is not None:
                taken[ours.at(index)] = array.T if move.transpose else array
                break
        else:
            left.append(name)
    return taken, left


def from_canonical(table: Table, arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Renames canonical arrays to the scheme's names.

    Raises:
        CheckpointError: The scheme has no name for one of the arrays.
    """
    out: dict[str, Array] = {}
    for name, array in arrays.items():
        for move in table:
            theirs, ours = move.names
            index = ours.index_of(name)
            if index is not None:
                out[theirs.at(index)] = np.ascontiguousarray(array.T if move.transpose else array)
                break
        else:
            raise CheckpointError(f"The target has no place for the array {name!r}.")
    return out


def require_same_names(found: Iterable[str], wanted: Iterable[str], *, where: str) -> None:
    """Refuses a set of arrays that is not exactly the wanted one.

    Raises:
        CheckpointError: Names that are missing, and names too many.
    """
    found, wanted = set(found), set(wanted)
    missing, spare = sorted(wanted - found), sorted(found - wanted)
    if missing or spare:
        parts = [f"missing: {', '.join(missing)}"] if missing else []
        parts += [f"not expected: {', '.join(spare)}"] if spare else []
        raise CheckpointError(
            f"The arrays do not fit the network: {'; '.join(parts)}.", where=where
        )
