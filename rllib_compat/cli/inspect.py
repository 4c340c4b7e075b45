"""`rllib-compat inspect`: what is inside a checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rllib_compat.cli import answers, options, output
from rllib_compat.neutral.budget import Budget
from rllib_compat.neutral.errors import CompatError, UnknownLayoutError

if TYPE_CHECKING:
    from rllib_compat.conversion.inspect import Inspection, PolicySummary
    from rllib_compat.formats.globals import FileGlobals


#: How many lines of a terminal are shown without `-v`, and how many of them the parts may take.
_LINES, _POLICIES, _ASSUMED = 40, 12, 8
#: How long the text of a space may be without `-v`: some list hundreds of numbers.
_SPACE = 60


@click.command("inspect")
@click.argument("checkpoint", type=options.PathOrAddress())
@click.option("--globals", "names", is_flag=True, help="List every class and function it names.")
@click.option("--arrays", is_flag=True, help="List every array with its shape and type.")
@click.option("--recursive", is_flag=True, help="Show a row for each checkpoint below a folder.")
@answers.option
@options.given_options
@options.json_option
@options.verbose_option
@options.strict_option
def command(
    checkpoint: str | Path,
    names: bool,
    arrays: bool,
    recursive: bool,
    hints: tuple[Path, ...],
    as_json: bool,
    verbose: int,
    strict: bool,
    **known: object,
) -> int:
    """Shows what is inside a CHECKPOINT of any Ray, without Ray and without running it.

    CHECKPOINT is a checkpoint file, its folder, or the trial's folder above it. Of a folder with
    several trials, it shows a table of their checkpoints.

    \b
    Examples:
      rllib-compat inspect ~/ray_results/PPO/PPO_CartPole-v0_0/checkpoint_100
      rllib-compat inspect --recursive ~/ray_results
      rllib-compat inspect --json checkpoint-100 | jq .policies
      rllib-compat inspect --arrays checkpoint-100
      rllib-compat inspect --globals checkpoint-100
    """
    from rllib_compat import inspect
    from rllib_compat.cli import overview
    from rllib_compat.formats.layouts import search
    from rllib_compat.formats.stores import source_path

    known_of, checkpoint = answers.Answers(hints, known), source_path(checkpoint)
    if recursive:
        return overview.show(checkpoint, known_of, as_json=as_json, everything=True)
    budget = Budget()
    listed = _names(checkpoint, budget) if names else None
    try:
        found = inspect(checkpoint, given=known_of.given(checkpoint), budget=budget)
    except CompatError as error:
        unknown = isinstance(error, UnknownLayoutError) and checkpoint.is_dir()
        if unknown and listed is None and search.suggest(checkpoint):
            return overview.show(checkpoint, known_of, as_json=as_json, everything=verbose > 0)
        # What a file names is rows even if nothing else of it can be.
        if listed is not None and as_json:
            output.error(error, as_json=True, **_plain(listed))
            return error.exit_code
        if listed is not None:
            _show_names(listed)
        raise
    if as_json:
        output.emit_json({**found.to_dict(), **(_plain(listed) if listed is not None else {})})
    else:
        _show(found, verbose)
        if arrays:
            output.table("arrays", ("policy", "name", "shape", "type"), _array_rows(found))
        if listed is not None:
            _show_names(listed)
    return found.report.exit_code if strict else 0


def _names(checkpoint: Path, budget: Budget) -> list[FileGlobals]:
    from rllib_compat.formats.globals import list_globals

    return list_globals(checkpoint, budget)


def _plain(listed: list[FileGlobals]) -> dict[str, Any]:
    """The names as plain data, for JSON; a row for each name in each pickle."""
    return {
        "globals": [
            {
                "name": name.name,
                "verdict": name.handling.value,
                "file": file.file,
                "inside": list(name.inside),
                "offset": name.offset,
                "times": name.times,
                "why": name.why,
            }
            for file in listed
            for name in file.names
        ]
    }


def _show_names(listed: list[FileGlobals]) -> None:
    output.table(
        "names in the files (none of them was imported)",
        ("name", "verdict", "file", "offset"),
        [
            (
                f"{name.name or '–'}" + (f" (refused: {name.why})" if name.why else ""),
                name.handling.value,
                " → ".join((file.file, *name.inside)),
                "–" if name.offset is None else name.offset,
            )
            for file in listed
            for name in file.names
        ],
    )


def _grouped(policies: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """A row for all policies that differ in nothing but their weights."""
    ids: dict[tuple[str, ...], list[str]] = {}
    for policy_id, *rest in policies:
        ids.setdefault(tuple(rest), []).append(policy_id)
    return [(output.shortened(alike), *rest) for rest, alike in ids.items()]


def _fact_rows(found: Inspection) -> list[tuple[str, str]]:
    counters, policies = found.counters, found.policies.values()
    trained = sum(policy.has_optimizer_state for policy in policies)
    counted = {
        "iterations": counters.iteration,
        "env steps": counters.env_steps,
        "episodes": counters.episodes,
        "hours": None if counters.seconds is None else f"{counters.seconds / 3600:.2f}",
    }
    keys = "all" if found.checkpoint.config_is_complete else "given by the user"
    return [
        ("format", found.layout),
        ("Ray", found.ray_version or "unknown"),
        ("algorithm", found.algorithm or "unknown"),
        ("environment", str(found.config.get("env", "unknown"))),
        ("config", f"{len(found.config)} keys ({keys})" if found.config else "none"),
        ("counters", ", ".join(f"{k} {v}" for k, v in counted.items() if v is not None) or "none"),
        ("policies", f"{len(policies)}, {trained} of them with the state of an optimizer"),
    ]


def _policy_row(policy: PolicySummary, verbose: int) -> tuple[str, ...]:
    old = policy.observation_filter
    seen = f", {old.stats[0].count} seen" if old and old.stats else ""
    spaces = [str(s or "unknown") for s in (policy.observation_space, policy.action_space)]
    spaces = [output.cut_text(text, None if verbose else _SPACE) for text in spaces]
    return (
        policy.policy_id,
        policy.network,
        f"{policy.parameters:,}",
        " → ".join(spaces),
        f"{old.kind}{seen}" if old else "none",
    )


def _array_rows(found: Inspection) -> list[tuple[str, str, str, str]]:
    return [
        (row.policy_id, row.name, "x".join(map(str, row.shape)) or "one number", row.dtype)
        for row in found.arrays
    ]


def _show(found: Inspection, verbose: int) -> None:
    """Prints an inspection: without `-v` as much as fits a screen, with the errors first."""

    def most(lines: int) -> int | None:
        return None if verbose else lines

    path = found.checkpoint.source.place
    left = _LINES - output.table("", ("checkpoint", path), _fact_rows(found), most=most(_POLICIES))
    policies = [_policy_row(policy, verbose) for policy in found.policies.values()]
    if policies:  # none is read where the file itself is missing
        output.say("")
        columns = ("policy", "network", "parameters", "spaces", "filter")
        rows = policies if verbose else _grouped(policies)
        left -= 1 + output.table("", columns, rows, most=most(_POLICIES))
    if assumptions := found.assumptions:
        output.say("")
        left -= 1 + output.table(
            "",
            ("policy", "not in the weights", "assumed", "from"),
            output.grouped_assumptions(assumptions),
            most=most(_ASSUMED),
        )
    if stand_ins := found.stand_ins:
        output.say("")
        if verbose:
            title = "classes and functions that are not known here (kept inert, never imported)"
            names = sorted(stand_ins.items(), key=lambda row: (-row[1], row[0]))
            output.table(title, ("name", "times"), names)
        else:
            said = "unknown classes and functions, which stay inert (-v lists them)"
            output.say(f"{said}: {len(stand_ins)}")
        left -= 2
    if found.report.findings:
        output.say("")
        output.report(found.report, verbose=verbose, most=most(left - 1))
