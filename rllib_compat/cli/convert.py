"""`rllib-compat convert`: converts a legacy checkpoint to one that the installed Ray reads."""

from __future__ import annotations

import shlex
from collections import Counter
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import click

from rllib_compat.cli import answers, named_modules, options, output, report
from rllib_compat.neutral.choices import FORMS, STATE_FORMATS
from rllib_compat.neutral.origins import describe_place

if TYPE_CHECKING:
    from rllib_compat.conversion.archive_log import Outcome
    from rllib_compat.conversion.convert import Conversion
    from rllib_compat.conversion.given import Given


_GROUPS = {
    "What to write": "to state_format overwrite dry_run write_model",
    "Proof": "no_verify inputs recorded",
    "What the checkpoint does not say": "algorithm config env observation_space action_space "
    "model weights_map policy trust hints",
    "Many checkpoints": "recursive jobs ray_address limit",
    "The machine that trains": "num_gpus num_env_runners keep_resources",
}


@click.command("convert", cls=options.GroupedCommand, groups=_GROUPS)
@click.argument("old", type=options.PathOrAddress())
@click.argument("new", type=options.PathOrAddress())
@click.option(
    "--to",
    type=click.Choice(FORMS),
    default="checkpointable",
    show_default=True,
    help="What to write; all but the first need no Ray.",
)
@click.option(
    "--state-format",
    type=click.Choice(STATE_FORMATS),
    default="pkl",
    show_default=True,
    help="How a Checkpointable tree keeps its state (msgpack: Ray 2.41 on).",
)
@click.option("--overwrite", is_flag=True, help="Replace NEW if it is a converted checkpoint.")
@click.option("--dry-run", is_flag=True, help="Show what would be done, and write nothing.")
@click.option("--no-verify", is_flag=True, help="Write even if old and new were not compared.")
@options.inputs_option
@options.recorded_option
@click.option(
    "--write-model",
    type=options.LocalPath(dir_okay=False),
    metavar="FILE.py",
    help="Write an RLModule for a custom model of plain layers, to edit and give to --model.",
)
@answers.option
@click.option("--recursive", is_flag=True, help="Convert all checkpoints below OLD into NEW.")
@click.option(
    "--jobs",
    type=click.IntRange(1, 1024),
    default=1,
    show_default=True,
    help="With --recursive: how many at once on this machine.",
)
@click.option(
    "--ray-address",
    metavar="ADDRESS",
    help="With --recursive: the Ray cluster that converts, one checkpoint a CPU, e.g. auto.",
)
@click.option(
    "--limit",
    type=click.FloatRange(1),
    default=3600,
    show_default=True,
    metavar="SECONDS",
    help="With --recursive: how long one conversion may take.",
)
@options.given_options
@options.target_options
@options.json_option
@options.verbose_option
@options.strict_option
def command(
    old: str | Path,
    new: str | Path,
    to: str,
    state_format: str,
    overwrite: bool,
    dry_run: bool,
    no_verify: bool,
    inputs: int,
    recorded: Path | None,
    write_model: Path | None,
    hints: tuple[Path, ...],
    recursive: bool,
    jobs: int,
    ray_address: str | None,
    limit: float,
    as_json: bool,
    verbose: int,
    strict: bool,
    **known: object,
) -> int:
    """Converts the checkpoint OLD of any Ray from 0.5 on into NEW, and proves it.

    The old network is computed from the old file, the new one from the new files, on the same
    inputs. If they differ, nothing is written. What the weights do not show (an activation, say)
    is taken from the config and listed as assumed, unless --recorded proves it. OLD is never
    changed.

    \b
    Examples:
      rllib-compat convert ~/ray_results/PPO_CartPole/checkpoint_100 new
      rllib-compat convert checkpoint-100 new --to msgpack
      rllib-compat convert checkpoint-100 new --to onnx
      rllib-compat convert checkpoint-100 pong.rlpolicy --to policy
      rllib-compat convert checkpoint-100 pong --to hub
      rllib-compat convert checkpoint-100 new --action-space 'Discrete(3)' --env MyEnv
      rllib-compat convert checkpoint-100 new --recorded recorded.npz
      rllib-compat convert checkpoint-100 new --write-model my_model.py
      rllib-compat convert checkpoint-100 new --dry-run -v
      rllib-compat convert ~/ray_results converted --recursive --jobs 4
      rllib-compat convert s3://bucket/runs s3://bucket/new --recursive --ray-address auto
      rllib-compat convert ~/ray_results converted --recursive --hints converted/hints.yaml
    """
    how: dict[str, Any] = {
        "to": to,
        "state_format": state_format,
        "prove": not no_verify,
        "inputs": inputs,
        "overwrite": overwrite,
        "dry_run": dry_run,
    }
    known_of = answers.Answers(hints, known)
    if recursive:
        if recorded:
            raise click.UsageError("--recorded is of one checkpoint; leave out --recursive.")
        if to == "policy":
            raise click.UsageError("--to policy writes one file; leave out --recursive.")
        how |= {"ray_address": ray_address, "processes": jobs, "limit": limit}
        return _convert_below(
            old, new, known_of, as_json=as_json, verbose=verbose, strict=strict, **how
        )
    how["given"] = known_of.given(PurePath(old))
    if write_model is not None:
        return _write_model(old, new, write_model, how["given"], recorded)
    from rllib_compat import convert

    output.progress(f"reading {describe_place(old)}")
    done = convert(old, new, recorded=recorded, **how)
    if as_json:
        output.emit_json(done.to_dict())
    else:
        show(done, verbose)
    return done.report.exit_code if strict else 0


def _write_model(
    old: str | Path, new: str | Path, file: Path, given: Given, recorded: Path | None
) -> int:
    """Writes the source of a module; the conversion itself is the next command."""
    from rllib_compat.conversion import recordings
    from rllib_compat.conversion.module_source import CLASS, make_module_source
    from rllib_compat.formats import layouts
    from rllib_compat.formats.atomic import atomic_file
    from rllib_compat.neutral.errors import TargetExistsError

    arrays = recordings.load(recorded) if recorded else None
    made = make_module_source(layouts.read(old), given, arrays)
    try:
        with atomic_file(file, overwrite=False) as out:
            out.write(made.source.encode())
    except TargetExistsError as error:
        fix = "Give another name, or remove it: you may have edited it."
        raise TargetExistsError(error.found, where=error.where, fix=fix) from error
    output.say(f"{file}: {CLASS}, {made.chain}")
    activation = (
        f"the recording says {made.activation} behind every layer but the last"
        if made.activation
        else "the weights do not show the activation: edit that line first, or pass --recorded"
    )
    output.say(activation)
    model = f"{file.stem}:{CLASS}"
    then = ["rllib-compat", "convert", str(old), str(new), "--model", model]
    output.say(f"next: {shlex.join(then)}")
    return 0


def show(done: Conversion, verbose: int) -> None:
    """Prints what a conversion did: its report, the proof, and the last line."""
    from rllib_compat.neutral.report import Report, Verdict

    shown = Report(done.report.title, done.report.facts)
    # What is equal and what is assumed have tables of their own.
    equal = [f for f in done.report if f.rule == "verify" and f.verdict is Verdict.EXACT]
    shown.extend(f for f in done.report if f not in equal and f.rule != "assumed")
    output.report(shown, verbose=verbose)
    output.proof(done.differences, done.assumptions, verbose)
    if done.target is None:
        said = f"dry run: nothing was written; as planned: {done.report.facts['result']}"
        output.say(said)
    else:
        output.say(f"{done.target}: {done.report.facts['result']}")
        for line in done.next_step.splitlines():  # one by one: they keep their indentation
            output.say(line)


def _convert_below(
    old: str | Path,
    new: str | Path,
    known: answers.Answers,
    *,
    as_json: bool,
    verbose: int,
    strict: bool,
    **options: Any,
) -> int:
    """Converts all checkpoints below a folder, with a bar, a table and a log; the exit code."""
    from contextlib import suppress
    from dataclasses import replace

    from rllib_compat.conversion.archive_log import LOG, Outcomes, read_log
    from rllib_compat.conversion.convert_many import convert_many, find_jobs
    from rllib_compat.formats.stores import join_place, write_file

    known.check()
    found = find_jobs(old, new)
    output.progress(f"{len(found)} checkpoints below {describe_place(old)}")
    jobs = (replace(job, given=known.given(job.name)) for job in found)
    log = join_place(new, LOG)
    outcomes, groups, counts, warned = Outcomes(), answers.Groups(), Counter[str](), 0
    with (
        suppress(KeyboardInterrupt),  # what was done until then is summed up
        output.progress_bar(len(found)) as advance,
    ):
        start = named_modules.finder()
        for outcome in convert_many(jobs, log, at_start=start, **options):
            outcomes.add(outcome)
            groups.add(outcome)
            counts[outcome.status] += 1
            warned += outcome.is_done and outcome.warnings > 0
            advance(_counts(counts))
    left = len(found) - len(outcomes)
    page, skeleton = join_place(new, report.NAME), None
    writes = bool(outcomes) and not options["dry_run"]
    if writes:
        write_file(page, report.make_page(read_log(new), new))
        skeleton = answers.write_skeleton(groups, new if isinstance(new, Path) else Path())
    if as_json:
        output.emit_json_list(map(vars, outcomes))
    else:
        if verbose:
            columns = ("checkpoint", "status", "largest difference", "warnings", "what happened")
            rows = sorted(outcomes, key=lambda o: (o.is_done, o.old))
            output.table("", columns, [_outcome_row(o) for o in rows])
        answers.show(groups, verbose)
        shown = _counts(counts)
        if left:
            shown += f", {left} left"
        if warned:
            shown += f" ({warned} with warnings; -v shows them)"
        output.say(f"{shown}; the log is {describe_place(log)}" if writes else shown)
        if writes:
            output.say(f"all of them in one page: {describe_place(page)}")
        if skeleton is not None:
            output.say(f"next: write your answers into {skeleton}, and run the command again with")
            output.say(f"  --hints {shlex.quote(str(skeleton))}")
        elif left:
            output.say("next: run the same command again, which converts the rest")
    if left or counts["failed"]:
        return 2
    return int(bool(counts["refused"] or (strict and warned)))


def _counts(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {status}" for status, count in counts.most_common())


def _outcome_row(outcome: Outcome) -> tuple[object, ...]:
    largest = outcome.largest_difference
    return (
        outcome.name,
        outcome.status,
        "" if largest is None else f"{largest:.2e}",
        outcome.warnings or "",
        tuple(outcome.message.split("\n")),
    )
