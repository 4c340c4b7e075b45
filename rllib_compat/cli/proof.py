"""What verbs print of a proof: what was compared, and what nothing could be compared with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from rllib_compat.cli import output

if TYPE_CHECKING:
    from rllib_compat.conversion.assumptions import Assumption
    from rllib_compat.conversion.compare import OutputDifference

Row = TypeVar("Row")

_COLUMNS = ("policy", "output", "inputs", "off by", "relative", "float32's own error", "equal")

#: The order of the rows: what proves most comes first.
_KINDS = {"recorded": 0, "given": 1, "random": 2, "stored": 3}

#: How many rows of each table are shown without `-v`; what differs comes first.
_SHOWN = 12


def show(
    differences: Sequence[OutputDifference], assumed: Sequence[Assumption], verbose: int
) -> None:
    """Prints a proof.

    Args:
        differences: What was compared.
        assumed: What no array shows.
        verbose: Whether every row is shown.
    """
    if differences:
        rows = _first(sorted(differences, key=lambda row: (row.ok, _KINDS[row.kind])), verbose)
        output.table("old against new", _COLUMNS, [_cells(row) for row in rows])
        _more(len(differences) - len(rows))
    proven = sum(row.proven for row in assumed)
    open_rows = [row for row in assumed if not row.proven]
    if open_rows:
        cells = grouped(open_rows)
        shown = _first(cells, verbose)
        output.table(
            "assumed, not proven: no array shows it",
            ("policy", "what", "assumed", "from"),
            shown,
        )
        _more(len(cells) - len(shown))
    if proven:
        said = f"{proven} of {len(assumed)} things that no array shows agree with the recording"
        output.say(said)
    elif open_rows and differences:
        output.say("to prove them: --recorded FILE (`rllib-compat recorder` prints what makes one)")


def grouped(assumed: Sequence[Assumption]) -> list[tuple[str, str, str, str]]:
    """A row for each thing that was assumed: the policies that it is assumed of, and its cells."""
    policies: dict[tuple[str, str, str], list[str]] = {}
    for row in assumed:
        policies.setdefault((row.what, row.value, row.source), []).append(row.policy_id)
    return [(names(ids), *key) for key, ids in policies.items()]


def _cells(row: OutputDifference) -> tuple[object, ...]:
    from rllib_compat.conversion.compare import WEIGHTS

    equal = "yes" if row.ok else "NO"
    if row.output == WEIGHTS:
        off = "same numbers" if row.ok else f"{row.absolute:.2e}"
        return row.policy_id, row.output, f"{row.inputs:,} numbers", off, "", "", equal
    return (
        row.policy_id,
        row.output,
        f"{row.inputs} {row.kind}",
        f"{row.absolute:.2e}",
        f"{row.relative:.2e}",
        f"{row.own_error:.2e}",
        equal,
    )


def _first(rows: Sequence[Row], verbose: int) -> list[Row]:
    return list(rows) if verbose else list(rows[:_SHOWN])


def names(ids: Sequence[str]) -> str:
    """The first of many policies, and how many more there are."""
    return ", ".join(ids[:3]) + (f" and {len(ids) - 3} more" if len(ids) > 3 else "")


def _more(count: int) -> None:
    if count:
        output.say(f"{count} more rows (-v shows them)")
