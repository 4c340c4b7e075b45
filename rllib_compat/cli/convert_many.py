"""`rllib-compat convert --recursive`: all checkpoints below a folder."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from rllib_compat.cli import output

#: Exit codes, as those of a single conversion: all done, or something needs attention.
DONE, ATTENTION = 0, 1


def convert_below(old: Path, new: Path, *, jobs: int, as_json: bool, **options: Any) -> int:
    """Converts all checkpoints below a folder, with a bar, a table at the end, and a log.

    Args:
        old: The folder.
        new: The folder that gets all the new ones, and the log.
        jobs: How many are converted at once.
        as_json: Whether stdout gets JSON.
        **options: What `convert` takes beside the paths.

    Returns:
        The exit code.
    """
    from dataclasses import asdict

    from rich.console import Console
    from rich.progress import track

    from rllib_compat.conversion.convert_many import LOG, convert_many, find_jobs

    found = find_jobs(old, new)
    output.progress(f"{len(found)} checkpoints below {old}")
    outcomes = list(
        track(
            convert_many(found, new / LOG, processes=jobs, **options),
            "converting",
            total=len(found),
            console=Console(stderr=True),
        )
    )
    if as_json:
        output.emit_json([asdict(outcome) for outcome in outcomes])
    else:
        output.table(
            "",
            ("checkpoint", "status", "largest difference", "warnings", "what happened"),
            [
                (
                    Path(o.old).relative_to(old),
                    o.status,
                    "" if o.largest_difference is None else f"{o.largest_difference:.2e}",
                    o.warnings or "",
                    tuple(o.message.split("\n")),
                )
                for o in sorted(outcomes, key=lambda o: o.old)
            ],
        )
        counts = Counter(o.status for o in outcomes)
        shown = ", ".join(f"{count} {status}" for status, count in counts.most_common())
        output.say(f"{shown}; the log is {new / LOG}")
    return DONE if all(o.is_done and not o.warnings for o in outcomes) else ATTENTION
