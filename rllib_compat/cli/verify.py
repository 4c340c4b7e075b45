"""`rllib-compat verify`: do an old and a converted checkpoint compute the same?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rllib_compat.cli import options, output


@click.command("verify")
@click.argument("old", type=options.PathOrAddress())
@click.argument("new", type=options.PathOrAddress())
@options.inputs_option
@click.option(
    "--observations",
    type=options.LocalPath(exists=True, dir_okay=False),
    help="A .npz file with more inputs: one array [B, inputs] a policy, under its id.",
)
@options.recorded_option
@options.given_options
@options.json_option
@options.verbose_option
def command(
    old: str | Path,
    new: str | Path,
    inputs: int,
    observations: Path | None,
    recorded: Path | None,
    as_json: bool,
    verbose: int,
    **known: Any,
) -> int:
    """Compares the old network of OLD with the module in NEW on the same inputs.

    The inputs are what the network sees: preprocessed and filtered observations. A difference may
    be ten times what float32 itself does to the old network's outputs. Exit code 1 if one is more.
    What the weights do not show comes from the config on both sides; it is listed, and --recorded
    proves it.

    \b
    Examples:
      rllib-compat verify checkpoint-100 new
      rllib-compat verify checkpoint-100 new -n 10000 --observations seen.npz
      rllib-compat verify checkpoint-100 new --recorded recorded.npz
    """
    from rllib_compat import verify

    found = verify(
        old,
        new,
        given=options.given(**known),
        inputs=inputs,
        observations=observations,
        recorded=recorded,
    )
    if as_json:
        output.emit_json(found.to_dict())
    else:
        output.proof(found.differences, found.assumptions, verbose)
    return 0 if found.equal else 1
