"""`rllib-compat artifacts`: what simulators wrote, inside a checkpoint."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import click

from rllib_compat.cli import options, output
from rllib_compat.neutral.origins import describe_place


@click.command("artifacts")
@click.argument("checkpoint", type=options.PathOrAddress())
@click.option("--verify", is_flag=True, help="Compare each file with its digest in the manifest.")
@click.option(
    "--extract",
    type=options.LocalPath(),
    metavar="FOLDER",
    help="Unpack all files into a new folder.",
)
@click.option(
    "--remote",
    is_flag=True,
    help="Read what is in a store of its own (`upload_to`), too, at the addresses it names.",
)
@options.json_option
def command(
    checkpoint: str | Path, *, verify: bool, extract: Path | None, remote: bool, as_json: bool
) -> int:
    """Lists, checks and unpacks the simulators' folders inside a checkpoint.

    They are there if it was trained with `SimulatorFolders`. What was left out is listed, and makes
    the exit code 1. Ray is not needed.

    \b
    Examples:
      rllib-compat artifacts ~/ray_results/PPO/trial/checkpoint_000010
      rllib-compat artifacts checkpoint_000010 --verify --extract results
    """
    from rllib_compat import artifacts
    from rllib_compat.formats.stores import source_path

    title, checkpoint = describe_place(checkpoint), source_path(checkpoint)
    manifest = artifacts.read_manifest(checkpoint)
    complaints = list(manifest.complaints)
    if verify:
        complaints += artifacts.verify(checkpoint, remote=remote)
    if extract is not None:
        artifacts.extract(checkpoint, extract, remote=remote)
    if as_json:
        output.emit_json({**dataclasses.asdict(manifest), "complaints": complaints})
    else:
        rows = [
            (f"{folder.place}/{file.path}", f"{file.size:,}", file.sha256[:12], folder.node)
            for folder in manifest.folders
            for file in folder.files
        ]
        output.table(title, ("file", "bytes", "sha256", "machine"), rows)
    for sentence in complaints:
        output.progress(sentence)
    return 1 if complaints else 0
