"""What verbs print: tables for people, JSON for programs, progress on stderr."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

import click

from rllib_compat.neutral.text import printable

if TYPE_CHECKING:
    from rllib_compat.conversion.assumptions import Assumption
    from rllib_compat.conversion.compare import OutputDifference
    from rllib_compat.neutral.report import Report

Row = TypeVar("Row")


def progress(message: str) -> None:
    """Says on stderr what is going on."""
    click.echo(printable(message), err=True)


def emit_json(value: object) -> None:
    """Prints plain data as JSON on stdout."""
    click.echo(json.dumps(value, indent=2, default=str))


def say(message: str) -> None:
    """Prints a line of a result on stdout."""
    click.echo(printable(message))


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Prints a table; what checkpoints put into it is shown as text, never as markup.

    On a terminal, or where `COLUMNS` says how wide, it fits the width and has borders. In a pipe or
    a file, a row is one line that nothing cuts, whatever its length, for `grep` and `less -S`; rich
    is not imported then, which would take a quarter of the time of `inspect`.

    Args:
        title: The line above it, or an empty one.
        columns: What stands above the columns.
        rows: A cell is one line of text, or a tuple of lines.
    """
    shown = [[_lines(cell) for cell in row] for row in rows]
    drawn = sys.stdout.isatty() or "COLUMNS" in os.environ
    (_draw if drawn else _align)(printable(title), columns, shown)


def _lines(cell: object) -> list[str]:
    return [printable(str(line)) for line in (cell if isinstance(cell, tuple) else (cell,))]


def _draw(title: str, columns: Sequence[str], rows: Iterable[Sequence[list[str]]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = Table(title=Text(title), title_justify="left")
    for column in columns:
        shown.add_column(column, overflow="fold")
    for row in rows:
        shown.add_row(*(Text("\n".join(lines)) for lines in row))
    Console(highlight=False).print(shown)


def _align(title: str, columns: Sequence[str], rows: Iterable[Sequence[list[str]]]) -> None:
    cells = [list(columns), *([" ".join(lines) for lines in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]
    click.echo("\n".join([*([title] if title else []), *lines, ""]))


#: Rows of a report that fit one screen; most take two or three lines.
_SCREEN = 12


def report(shown: Report, *, verbose: int) -> None:
    """Prints a report: what needs attention, as much as fits a screen; the rest with `-v`."""
    from rllib_compat.neutral.report import Severity, grouped

    rows = grouped(shown.findings)
    notable = rows if verbose else [f for f in rows if f.severity is not Severity.INFO]
    head = ", ".join(f"{name}: {value}" for name, value in shown.facts.items() if name != "result")
    say(f"{shown.title} ({head})" if head else shown.title)
    cut = 0 if verbose else max(len(notable) - _SCREEN, 0)
    if cut:  # errors first; how many are left out is told below
        notable = sorted(notable, key=lambda finding: finding.severity is not Severity.ERROR)
        notable = notable[:_SCREEN]
    if notable:
        cells = [
            (f.verdict.value, f.path, (f.message, *([f"→ {f.hint}"] if f.hint else [])))
            for f in notable
        ]
        table("", ("verdict", "where", "what happened"), cells)
    if cut:
        say(f"{cut} more that need attention (-v shows them)")
    hidden = len(rows) - len(notable) - cut
    if hidden:
        say(f"{hidden} more that need no attention (-v shows them)")


_PROOF_COLUMNS = (
    *("policy", "output", "inputs", "off by", "relative"),
    *("float32's own error", "equal"),
)

#: The order of the rows: what proves most comes first.
_KINDS = {"recorded": 0, "given": 1, "random": 2, "stored": 3}

#: How many rows of each table are shown without `-v`; what differs comes first.
_PROOF_ROWS = 12


def proof(
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
        table("old against new", _PROOF_COLUMNS, [_cells(row) for row in rows])
        _more(len(differences) - len(rows))
    proven = sum(row.proven for row in assumed)
    open_rows = [row for row in assumed if not row.proven]
    if open_rows:
        cells = grouped_assumptions(open_rows)
        shown = _first(cells, verbose)
        table(
            "assumed, not proven: no array shows it",
            ("policy", "what", "assumed", "from"),
            shown,
        )
        _more(len(cells) - len(shown))
    if proven:
        said = f"{proven} of {len(assumed)} things that no array shows agree with the recording"
        say(said)
    elif open_rows and differences:
        say("to prove them: --recorded FILE (`rllib-compat recorder` prints what makes one)")


def grouped_assumptions(assumed: Sequence[Assumption]) -> list[tuple[str, str, str, str]]:
    """A row for each thing that was assumed: the policies that it is assumed of, and its cells."""
    policies: dict[tuple[str, str, str], list[str]] = {}
    for row in assumed:
        policies.setdefault((row.what, row.value, row.source), []).append(row.policy_id)
    return [(shortened(ids), *key) for key, ids in policies.items()]


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
    return list(rows) if verbose else list(rows[:_PROOF_ROWS])


def shortened(ids: Sequence[str]) -> str:
    """The first of many policies, and how many more there are."""
    return ", ".join(ids[:3]) + (f" and {len(ids) - 3} more" if len(ids) > 3 else "")


def _more(count: int) -> None:
    if count:
        say(f"{count} more rows (-v shows them)")
