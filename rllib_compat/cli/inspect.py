"""`rllib-compat inspect`: what is inside a checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rllib_compat.cli import options, output

if TYPE_CHECKING:
    from rllib_compat.convert.inspect import Inspection


@click.command("inspect")
@click.argument("checkpoint", type=click.Path(path_type=Path))
@options.given_options
@options.json_option
@options.verbose_option
def command(checkpoint: Path, as_json: bool, verbose: int, **known: Any) -> int:
    """Tells what is inside a CHECKPOINT of any Ray, without Ray and without running it.

    CHECKPOINT is a checkpoint file, its folder, or the trial's folder above it.

    \b
    Examples:
      rllib-compat inspect ~/ray_results/PPO/PPO_CartPole-v0_0/checkpoint_100
      rllib-compat inspect --json checkpoint-100 | jq .policies
    """
    from rllib_compat.convert.inspect import inspect

    found = inspect(checkpoint, options.given(**known))
    if as_json:
        output.emit_json(found.to_dict())
    else:
        _show(found, verbose)
    return found.report.exit_code


def _show(found: Inspection, verbose: int) -> None:
    output.table(str(found.checkpoint.source.path), ("what", "found"), found.facts())
    output.table("policies", ("id", "network", "parameters", "spaces", "filter"), found.policies())
    if found.checkpoint.stand_ins:
        rows = sorted(found.checkpoint.stand_ins.items(), key=lambda row: (-row[1], row[0]))
        shown = rows if verbose else rows[:10]
        output.table(
            "classes and functions that are not known here (kept inert, never imported)",
            ("name", "times"),
            [*shown, *([("…", f"{len(rows) - 10} more, -v")] if len(shown) < len(rows) else [])],
        )
    if found.report.findings:
        output.report(found.report, verbose=verbose)
