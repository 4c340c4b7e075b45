"""What verbs print: tables for people, JSON for programs, progress on stderr."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

import click

from rllib_compat.neutral.errors import CompatError
from rllib_compat.neutral.text import printable

if TYPE_CHECKING:
    from rllib_compat.conversion.compare import OutputDifference
    from rllib_compat.conversion.prove import Assumption
    from rllib_compat.neutral.report import Report

Row = TypeVar("Row")

#: Spaces between columns, and how narrow a column may become.
_GAP, _NARROWEST = 2, 8
_MINUTE = 60.0  # seconds


def progress(message: str) -> None:
    """Says on stderr what is going on."""
    click.echo(printable(message), err=True)


def emit_json(value: object) -> None:
    """Prints plain data as JSON on stdout."""
    click.echo(json.dumps(value, indent=2, default=str))


def emit_json_list(values: Iterable[object]) -> None:
    """Prints what may be too much for memory, as one list in JSON."""
    click.echo("[", nl=False)
    for number, value in enumerate(values):
        click.echo(("," if number else "") + json.dumps(value, indent=2, default=str))
    click.echo("]")


@contextmanager
def progress_bar(total: int) -> Iterator[Callable[[str], None]]:
    """Shows on stderr how many things are done: a bar on a terminal, elsewhere a line a minute.

    Args:
        total: How many there are.

    Yields:
        What is called when one is done, with what became of all until then.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    console, began, done = Console(stderr=True), time.monotonic(), 0
    bar = Progress(BarColumn(), TextColumn("{task.description}", markup=False), console=console)
    task, said = bar.add_task("", total=total), began

    def advance(counts: str) -> None:
        nonlocal done, said
        done, now = done + 1, time.monotonic()
        rate = done / max(now - began, 1e-3)
        left = timedelta(seconds=round((total - done) / rate))
        text = f"{done:,} of {total:,}: {counts}; {rate:.1f} a second, {left} left"
        if console.is_terminal:
            bar.update(task, completed=done, description=text)
        elif now - said > _MINUTE or done == total:
            said = now
            progress(text)

    with bar if console.is_terminal else nullcontext():
        yield advance


def error(found: Exception, *, as_json: bool, **more: object) -> None:
    """Prints an error on stderr, and as JSON also on stdout, for programs."""
    said = str(found)
    if isinstance(found, click.ClickException):
        said = found.format_message()
    elif isinstance(found, CompatError):
        said = found.for_command_line()
    click.secho("error: ", fg="red", bold=True, err=True, nl=False)
    click.echo(said, err=True)
    if as_json:
        parts = {name: getattr(found, name, None) for name in ("where", "fix")}
        kind, sentence = type(found).__name__, getattr(found, "found", said)
        emit_json({**more, "error": {"kind": kind, "found": sentence, **parts}})


def say(message: str) -> None:
    """Prints a line of a result on stdout."""
    click.echo(printable(message))


def table(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    most: int | None = None,
) -> int:
    """Prints a table; what checkpoints put into it is shown as text, never as markup.

    On a terminal, or where `COLUMNS` says how wide, it fits the width, and no word is broken. In a
    pipe or a file, a row is one line that nothing cuts, for `grep` and `less -S`. A cell is one
    line of text, or a tuple of lines. Of more lines than `most`, the last one counts the rows that
    did not fit.

    Returns:
        How many lines it took.
    """
    shown = [[_lines(cell) for cell in row] for row in rows]
    count = len(shown) if most is None else min(len(shown), most)
    lines = _draw(printable(title), columns, shown[:count], spaced=most is None)
    while most is not None and len(lines) + (count < len(shown)) > most and count > 1:
        count -= 1
        lines = _draw(printable(title), columns, shown[:count])
    left = len(shown) - count
    if most is not None and len(lines) + (left > 0) > most:  # one row is more than that
        lines = [*lines[: most - 1 - (left > 0)], "…"]
    click.echo("\n".join(lines))
    if left:
        say(f"{left} more rows (-v shows them)")
    return len(lines) + (left > 0)


def _lines(cell: object) -> list[str]:
    return [printable(str(line)) for line in (cell if isinstance(cell, tuple) else (cell,))]


class _Wrapper(textwrap.TextWrapper):
    """Breaks lines between words, and long names after a slash, an underscore or a dot."""

    wordsep_simple_re = re.compile(
        r"(\s+)|(?<=[/_])(?=\w)|(?<=[a-z]\.)(?=[a-z])|(?<=\w\()(?=[a-z])"
    )


def _draw(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[list[str]]], spaced: bool = False
) -> list[str]:
    """The lines of a table, which fit the terminal if there is one."""
    head = [[[name] for name in columns]] if any(columns) else []
    cells = [*head, *rows]
    fits = sys.stdout.isatty() or "COLUMNS" in os.environ
    if not fits:  # a row is a line
        cells = [[[" ".join(cell)] for cell in row] for row in cells]
    by_column = zip(*cells, strict=True)
    widths = [max(len(line) for cell in column for line in cell) for column in by_column]
    if fits:
        widths = _narrowed(widths, shutil.get_terminal_size().columns - _GAP * (len(widths) - 1))
    lines = [title] if title else []
    for row in cells:
        wrapped = [
            [part for line in cell for part in _wrap(line, width)] if fits else cell
            for cell, width in zip(row, widths, strict=True)
        ]
        for parts in itertools.zip_longest(*wrapped, fillvalue=""):
            padded = (part.ljust(width) for part, width in zip(parts, widths, strict=True))
            lines.append((" " * _GAP).join(padded).rstrip())
    return [*lines, ""] if spaced else lines


class _PathWrapper(_Wrapper):
    """Breaks a path after its hyphens, too, at which options are not broken."""

    wordsep_simple_re = re.compile(rf"{_Wrapper.wordsep_simple_re.pattern}|(?<=\w-)(?=\w)")


def _wrap(line: str, width: int) -> list[str]:
    kind = _Wrapper if " " in line or line.startswith("-") else _PathWrapper
    wrapper = kind(width, break_on_hyphens=False, drop_whitespace=True)
    return wrapper.wrap(line) or [""]


def _narrowed(widths: Sequence[int], room: int) -> list[int]:
    """Widths that fit: the widest columns become as narrow as each other, and no narrower."""
    limit = max(widths, default=0)
    while sum(min(width, limit) for width in widths) > room and limit > _NARROWEST:
        limit -= 1
    return [min(width, limit) for width in widths]


#: Rows of a report that fit one screen; most take two or three lines.
_SCREEN = 12
#: Longer messages end in "…" without `-v`: some hold a space of hundreds of numbers.
_LONGEST = 400


def cut_text(text: str, longest: int | None) -> str:
    """A text of at most so many characters; None: all of it."""
    return text if longest is None or len(text) <= longest else f"{text[:longest]}…"


def report(shown: Report, *, verbose: int, most: int | None = None) -> None:
    """Prints a report: what needs attention, as much as fits a screen; the rest with `-v`.

    `most` is how many lines it may take; None: twelve rows, however many lines these take.
    """
    from rllib_compat.neutral.report import Severity, grouped

    rows = grouped(shown.findings)
    notable = rows if verbose else [f for f in rows if f.severity is not Severity.INFO]
    head = ", ".join(f"{name}: {value}" for name, value in shown.facts.items() if name != "result")
    title = f"{shown.title} ({head})" if head else shown.title
    if most is None:
        say(title)
    hidden = len(rows) - len(notable)
    cut = 0 if verbose or most is not None else max(len(notable) - _SCREEN, 0)
    if not verbose:  # errors first, as the last rows may be left out
        notable.sort(key=lambda finding: finding.severity is not Severity.ERROR)
    if notable:
        longest = None if verbose else _LONGEST
        cells = [
            (
                f.verdict.value,
                f.path,
                (cut_text(f.message, longest), *([f"→ {f.hint}"] if f.hint else [])),
            )
            for f in notable[: len(notable) - cut]
        ]
        most = None if most is None else most - (hidden > 0)
        table("", ("verdict", "where", "what happened"), cells, most=most)
    if cut:
        say(f"{cut} more that need attention (-v shows them)")
    if hidden:
        say(f"{hidden} more that need no attention (-v shows them)")


_PROOF_COLUMNS = ("policy", "output", "inputs", "off by", "float32 error", "equal")

#: The order of the rows: what proves most comes first.
_KINDS = {"recorded": 0, "given": 1, "random": 2, "stored": 3}

#: How many rows of each table are shown without `-v`; what differs comes first.
_PROOF_ROWS = 12


def proof(
    differences: Sequence[OutputDifference], assumed: Sequence[Assumption], verbose: int
) -> None:
    """Prints a proof."""
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
            "assumed, not proven: the weights do not show it",
            ("policy", "what", "assumed", "from"),
            shown,
        )
        _more(len(cells) - len(shown))
    if proven:
        said = f"the recording confirms {proven} of {len(assumed)} assumptions"
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
        return row.policy_id, row.output, f"{row.inputs:,} numbers", off, "", equal
    return (
        row.policy_id,
        row.output,
        f"{row.inputs} {row.kind}",
        f"{row.absolute:.2e}",
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
