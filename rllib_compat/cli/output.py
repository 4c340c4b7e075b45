"""What verbs print: tables for people, JSON for programs, progress on stderr."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from rllib_compat.neutral.text import printable

if TYPE_CHECKING:
    from rich.console import Console

    from rllib_compat.neutral.report import Report


def progress(message: str) -> None:
    """Says on stderr what is going on."""
    click.echo(printable(message), err=True)


def emit_json(value: Any) -> None:
    """Prints plain data as JSON on stdout."""
    click.echo(json.dumps(value, indent=2, default=str))


def console() -> Console:
    """A console for stdout. Piped output has no width of its own: lines are then not cut."""
    from rich.console import Console

    width = None if sys.stdout.isatty() or os.environ.get("COLUMNS") else 120
    return Console(width=width, highlight=False, soft_wrap=False)


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Prints a table; what checkpoints put into it is shown as text, never as markup.

    A cell is one line of text, or a tuple of lines.
    """
    from rich.table import Table
    from rich.text import Text

    shown = Table(title=Text(printable(title)), title_justify="left")
    for column in columns:
        shown.add_column(column, overflow="fold")
    for row in rows:
        shown.add_row(*(Text(_cell(cell)) for cell in row))
    console().print(shown)


def _cell(cell: object) -> str:
    lines = cell if isinstance(cell, tuple) else (cell,)
    return "\n".join(printable(str(line)) for line in lines)


#: Rows of a report that fit one screen; most take two or three lines.
_SCREEN = 12


def report(shown: Report, *, verbose: int) -> None:
    """Prints a report: what needs attention, as much as fits a screen; the rest with `-v`."""
    from rllib_compat.neutral.report import Severity, grouped

    rows = grouped(shown.findings)
    notable = rows if verbose else [f for f in rows if f.severity is not Severity.INFO]
    head = ", ".join(f"{name}: {value}" for name, value in shown.facts.items() if name != "result")
    console().print(printable(f"{shown.title} ({head})" if head else shown.title), markup=False)
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
        console().print(f"{cut} more that need attention (-v shows them)", markup=False)
    hidden = len(rows) - len(notable) - cut
    if hidden:
        console().print(f"{hidden} more that need no attention (-v shows them)", markup=False)
