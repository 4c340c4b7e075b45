"""`rllib-compat plot`: what trials have logged, of any Ray, in one picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rllib_compat.cli import options, output
from rllib_compat.neutral.origins import describe_place

if TYPE_CHECKING:
    from rllib_compat.trials.read import Trial


@click.command("plot")
@click.argument(
    "paths",
    nargs=-1,
    required=True,
    type=options.PathOrAddress(),
    metavar="TRIAL_OR_CHECKPOINT...",
)
@click.option(
    "--out",
    type=options.LocalPath(dir_okay=False),
    default=Path("plot.png"),
    show_default=True,
    help="The picture; its suffix selects the format.",
)
@click.option(
    "--x",
    "axis",
    type=click.Choice(["steps", "iterations", "hours"]),
    default="steps",
    show_default=True,
    help="What to draw along.",
)
@click.option(
    "--data",
    multiple=True,
    metavar="PATH",
    help="Another number in the results, e.g. info/num_steps.",
)
@click.option(
    "--label",
    "labels",
    multiple=True,
    metavar="NAME",
    help="What the trials of a path are called, in the order of the paths: one curve with the mean "
    "over its trials, and a band of their standard deviation.",
)
@click.option(
    "--smooth",
    type=click.IntRange(1, 1000),
    default=1,
    show_default=True,
    help="The mean over so many points.",
)
@click.option("--overwrite", is_flag=True, help="Replace a picture that is there.")
@options.json_option
@click.option("--strict", is_flag=True, help="End with exit code 1 if something was left out.")
def command(
    paths: tuple[str | Path, ...],
    *,
    out: Path,
    axis: str,
    data: tuple[str, ...],
    labels: tuple[str, ...],
    smooth: int,
    overwrite: bool,
    as_json: bool,
    strict: bool,
) -> int:
    """Draws returns, episode lengths and recorded data of trials of any Ray.

    Each TRIAL_OR_CHECKPOINT is a trial's folder, a checkpoint in it, a folder with trials below, or
    a result.json or progress.csv. With --json, the numbers are printed and nothing is drawn.

    \b
    Examples:
      rllib-compat plot ~/ray_results/PPO_old/PPO_CartPole-v0_0 ~/ray_results/PPO_new
      rllib-compat plot ~/ray_results/PPO --x hours --out curves.svg
      rllib-compat plot old_seeds new_seeds --label 'Ray 0.8.5' --label 'Ray 2.60' --smooth 5
    """
    from rllib_compat.trials import draw, read

    if labels and len(labels) != len(paths):
        raise click.UsageError("Give a --label for each path, or none.")
    found = [
        [read.read_trial(file, axis=axis, more=data) for file in read.find_trials(path)]
        for path in paths
    ]
    if labels:
        trials = [draw.combine(own, name) for own, name in zip(found, labels, strict=True)]
    else:  # the same trial may be meant by two paths
        trials = list({trial.path: trial for own in found for trial in own}.values())
    if smooth > 1:
        trials = [draw.smooth(trial, smooth) for trial in trials]
    notes = [note for trial in trials for note in trial.notes]
    if as_json:
        shown = [
            {
                "path": describe_place(t.path),
                **({"label": t.label} if t.label else {}),
                "curves": _shown(t),
            }
            for t in trials
        ]
        output.emit_json(shown)
    else:
        draw.draw(trials, out, axis=axis, overwrite=overwrite)
        names = draw.panels(trials)
        notes += [f"no room to draw {name}" for name in names[draw.MOST_PANELS :]]
        click.echo(out)
    for note in notes:
        output.progress(note)
    return int(strict and bool(notes))


def _shown(trial: Trial) -> dict[str, list[dict[str, float | None]]]:
    return {
        name: [
            {key: value if value == value else None for key, value in point._asdict().items()}
            for point in points
        ]
        for name, points in trial.curves.items()
    }
