"""Weights move between naming schemes by tables, not by code.

A table is a tuple of `Move`s. Each names one array (or one family of arrays, with an index) on
either side and says what is done to it on the way. The same table is read in both directions,
so that a scheme which can be read can also be written. Names that no move takes, on either side,
are an error: nothing of a network is ever dropped or invented silently.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from rllib_compat.networks import refusals
from rllib_compat.neutral.errors import CheckpointError
from rllib_compat.neutral.frozen import frozen

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

_PLACEHOLDER = re.compile(r"\{(?:(\d+)\*)?i(?:\+(\d+))?\}")


@frozen
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


@frozen
class Change:
    """What is done to an array on the way, and how it is undone.

    Attributes:
        there: From the scheme's form to the canonical one.
        back: The reverse.
    """

    there: Callable[[Array], Array]
    back: Callable[[Array], Array]


AS_IS = Change(lambda x: x, lambda x: x)
#: torch keeps the matrix of a dense layer as `[out, in]`.
TRANSPOSED = Change(lambda x: x.T, lambda x: x.T)
#: torch keeps a convolution's kernel as `[out, in, h, w]`; ours is `[h, w, in, out]`.
CHANNELS_FIRST = Change(
    lambda x: x.transpose(2, 3, 1, 0) if x.ndim == 4 else x.T,
    lambda x: x.transpose(3, 2, 0, 1) if x.ndim == 4 else x.T,
)


@frozen
class Move:
    """One row of a table.

    Attributes:
        theirs: The name in the scheme that the table describes.
        ours: The name in the canonical form of the network.
        change: What is done to the array.
    """

    theirs: str
    ours: str
    change: Change = AS_IS

    @cached_property
    def names(self) -> tuple[Name, Name]:
        """Both names, parsed."""
        return Name(self.theirs), Name(self.ours)


Table: TypeAlias = tuple[Move, ...]


def keras(theirs: str, ours: str) -> Table:
    """The two rows of a dense layer or a convolution of keras, and of tf.contrib since Ray 0.7."""
    return Move(f"{theirs}/kernel", f"{ours}.kernel"), Move(f"{theirs}/bias", f"{ours}.bias")


def torch_dense(theirs: str, ours: str) -> Table:
    """The two rows of a torch `Linear`."""
    return (
        Move(f"{theirs}.weight", f"{ours}.kernel", TRANSPOSED),
        Move(f"{theirs}.bias", f"{ours}.bias"),
    )


def torch_layer(theirs: str, ours: str) -> Table:
    """The two rows of a torch `Linear` or `Conv2d`, whichever it is."""
    return (
        Move(f"{theirs}.weight", f"{ours}.kernel", CHANNELS_FIRST),
        Move(f"{theirs}.bias", f"{ours}.bias"),
    )


def torch_lstm(theirs: str, ours: str) -> Table:
    """The rows of a torch `LSTM` of one layer."""
    return (
        Move(f"{theirs}.weight_ih_l0", f"{ours}.kernel", TRANSPOSED),
        Move(f"{theirs}.weight_hh_l0", f"{ours}.recurrent_kernel", TRANSPOSED),
        Move(f"{theirs}.bias_ih_l0", f"{ours}.bias"),
        Move(f"{theirs}.bias_hh_l0", f"{ours}.recurrent_bias"),
    )


def torch_mlp(theirs: str, ours: str, *, linear: bool) -> Table:
    """The rows of the dense layers of an RLModule's encoder.

    Activation modules take every second number; where the layers are linear, there are none.
    """
    return torch_dense(f"{theirs}.net.mlp.{'{i}' if linear else '{2*i}'}", f"{ours}.{{i}}")


def row_for(table: Table, name: str) -> Move | None:
    """The row that takes an array, for this one name; None where no row of the table does."""
    for move in table:
        theirs, ours = move.names
        index = theirs.index_of(name)
        if index is not None:
            return replace(move, theirs=name, ours=ours.at(index))
    return None


def row_to(table: Table, canonical: str) -> Move | None:
    """The row that makes an array, for this one name; None where no row of the table does."""
    for move in table:
        theirs, ours = move.names
        index = ours.index_of(canonical)
        if index is not None:
            return replace(move, theirs=theirs.at(index), ours=canonical)
    return None


def to_canonical(table: Table, arrays: Mapping[str, Array]) -> tuple[dict[str, Array], list[str]]:
    """Renames the scheme's arrays to the canonical form.

    Returns:
        The canonical arrays, and the names that no row of the table takes, or whose place another
        array has taken. (One array under two names is one array.)
    """
    taken: dict[str, Array] = {}
    left: list[str] = []
    for name, array in arrays.items():
        for move in table:
            theirs, ours = move.names
            index = theirs.index_of(name)
            if index is not None:
                canonical, changed = ours.at(index), move.change.there(array)
                if np.array_equal(taken.setdefault(canonical, changed), changed, equal_nan=True):
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
        move = row_to(table, name)
        if move is None:
            raise CheckpointError(
                f"The target has no place for the array {name!r}.", fix=refusals.CHECK
            )
        out[move.theirs] = move.change.back(array)
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
            f"The arrays do not fit the network: {'; '.join(parts)}.",
            where=where,
            fix=refusals.CHECK,
        )
