"""`rllib-compat report`: what became of an archive, in one HTML file."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rllib_compat.cli import answers, options, output
from rllib_compat.neutral.origins import describe_place
from rllib_compat.neutral.text import printable

if TYPE_CHECKING:
    from rllib_compat.conversion.archive_log import Outcome, Outcomes

#: How many characters a text has at most; and how many checkpoints that need no attention have
#: details and a curve, and a row. A page with more of them would be too large for a browser.
_LONGEST, _MOST_DETAILED, _MOST_ROWS = 2000, 20_000, 200_000
#: The file that `convert --recursive` writes into its output folder.
NAME = "report.html"


@click.command("report")
@click.argument("folder", type=options.PathOrAddress())
@click.option(
    "--out",
    "-o",
    type=options.LocalPath(dir_okay=False),
    default=Path(NAME),
    show_default=True,
    help="The file; one that is there is replaced.",
)
def command(folder: str | Path, out: Path) -> int:
    """Writes one HTML page about what `convert --recursive` made of an archive.

    FOLDER is the output folder of that command, or its address. The page needs no network: it has
    totals, the refusals by reason, each with what to do, and a table of all checkpoints to sort,
    filter and search. `convert --recursive` writes it, too.

    \b
    Examples:
      rllib-compat report converted
      rllib-compat report s3://bucket/converted --out archive.html
    """
    from rllib_compat.conversion.archive_log import read_log
    from rllib_compat.formats.atomic import atomic_file

    outcomes = read_log(folder)
    with atomic_file(out) as file:
        file.writelines(make_page(outcomes, folder))
    output.say(f"{out}: {len(outcomes)} checkpoints")
    return 0


def make_page(outcomes: Outcomes, folder: str | Path) -> Iterator[bytes]:
    """The page in parts, as UTF-8."""
    head, tail = (files(__package__) / "report_page.html").read_text("utf-8").split("DATA")
    groups, counts, quiet = answers.Groups(), Counter[str](), 0
    for outcome in outcomes:
        groups.add(outcome)
        counts[_text(outcome.status)] += 1
        quiet += _is_quiet(outcome)
    said = f"Written into {describe_place(folder)}."
    if quiet > _MOST_ROWS:
        said += (
            f" Of {quiet:,} that need no attention, {_MOST_ROWS:,} have a row; all are in the log."
        )
    about = {
        "about": said,
        "totals": [("checkpoints", len(outcomes)), *counts.most_common()],
        "reasons": list(_reasons(groups)),
    }
    yield f'{head}{_json(about)[:-1]}, "rows": ['.encode()
    quiet, separator = 0, ""
    for outcome in outcomes:
        is_quiet = _is_quiet(outcome)
        quiet += is_quiet
        if is_quiet and quiet > _MOST_ROWS:
            continue
        row = _row(outcome)
        if is_quiet and quiet > _MOST_DETAILED:
            row |= {"curve": [], "details": "Its details are in the log."}
        yield f"{separator}{_json(row)}".encode()
        separator = ","
    yield f"]}}{tail}".encode()


def _is_quiet(outcome: Outcome) -> bool:
    """Whether a checkpoint needs no attention."""
    return outcome.is_done and not outcome.warnings


def _json(value: object) -> str:
    """JSON for a script, where nothing but the end of the script would be more than text."""
    text = json.dumps(value, allow_nan=False)
    return text.replace("<", "\\u003c").replace("&", "\\u0026")


def _row(outcome: Outcome) -> dict[str, Any]:
    facts = outcome.facts or {}
    curve = [[x, y] for x, y in outcome.curve if None not in (_number(x), _number(y))]
    details = [outcome.message or outcome.fix, f"from {outcome.old}", f"to {outcome.new}"]
    details += [f"{name}: {value}" for name, value in facts.items()]
    details += outcome.details
    return {
        "name": _text(outcome.name or outcome.old),
        "status": _text(outcome.status),
        "algorithm": _text(facts.get("algorithm")),
        "ray": _text(facts.get("ray")),
        "environment": _text(facts.get("environment")),
        "networks": _text(facts.get("networks")),
        "policies": _number(facts.get("policies")),
        "parameters": _number(facts.get("parameters")),
        "steps": _number(facts.get("env steps")),
        "last": curve[-1][1] if curve else None,
        "curve": curve,
        "difference": _number(outcome.largest_difference),
        "warnings": _number(outcome.warnings) or None,
        "todo": _text(outcome.fix),
        "details": "\n".join(map(_text, details)),
    }


def _reasons(groups: answers.Groups) -> Iterator[dict[str, Any]]:
    for first, names in groups:
        yield {
            "count": len(names),
            "status": _text(first.status),
            "reason": _text(first.reason),
            "fix": _text(first.fix),
            "command": _text(answers.command_for(first)),
        }


def _text(value: object) -> str:
    return "" if value is None else printable(str(value)[:_LONGEST])


def _number(value: object) -> float | None:
    is_number = isinstance(value, (int, float)) and abs(value) < float("inf")
    return value if is_number else None  # type: ignore[return-value] # it was looked at
