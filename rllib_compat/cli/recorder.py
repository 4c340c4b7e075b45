"""`rllib-compat recorder`: the script that records outputs in an old Ray."""

from __future__ import annotations

from importlib import resources

import click


@click.command("recorder")
def command() -> int:
    """Prints a Python script that records what an old Ray computes, for --recorded.

    Run it where the old Ray is installed (0.5 to 2.x, old API stack), on the trainer that has
    restored the checkpoint. It needs numpy and nothing of this package.

    \b
    Example:
      rllib-compat recorder > record.py
      # in the old Ray:  from record import record; record(trainer, "recorded.npz")
      rllib-compat convert checkpoint-100 new --recorded recorded.npz
    """
    script = resources.files("rllib_compat") / "record.py"
    click.echo(script.read_text("utf-8"), nl=False)
    return 0
