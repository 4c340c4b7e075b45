"""`rllib-compat verify`: do an old and a converted checkpoint compute the same?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rllib_compat.cli import options, output


@click.command("verify")
@click.argument("old", type=click.Path(path_type=Path))
@click.argument("new", type=click.Path(path_type=Path))
@click.option("-n", "--inputs", default=1000, show_default=True, help="Random inputs to compare.")
@click.option(
    "--observations",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A .npz file with more inputs: one array [B, inputs] a policy, under its id.",
)
@options.given_options
@options.json_option
def command(
    old: Path, new: Path, inputs: int, observations: Path | None, as_json: bool, **known: Any
) -> int:
    """Compares the old network of OLD with the module in NEW on the same inputs.

    The inputs are what the network sees: preprocessed and filtered observations. Exit code 1 if
    a difference is beyond the tolerance.

    \b
    Examples:
      rllib-compat verify checkpoint-100 new
      rllib-compat verify checkpoint-100 new -n 10000 --observations seen.npz
    """
    from rllib_compat.convert.pipeline import verify_pair

    rows = verify_pair(
        old,
        new,
        given=options.given(**known),
        inputs=inputs,
        observations=_load(observations) if observations else None,
    )
    if as_json:
        output.emit_json([vars(row) for row in rows])
    else:
        output.table(
            "old against new",
            ("policy", "output", "inputs", "largest absolute", "largest relative", "equal"),
            [
                (
                    row.policy_id,
                    row.output,
                    row.inputs,
                    f"{row.absolute:.2e}",
                    f"{row.relative:.2e}",
                    "yes" if row.ok else "NO",
                )
                for row in rows
            ],
        )
    return 0 if all(row.ok for row in rows) else 1


def _load(file: Path) -> dict[str, Any]:
    import numpy as np

    from rllib_compat.neutral.errors import CheckpointError

    try:
        with np.load(file, allow_pickle=False) as arrays:
            return {name.split("/", 1)[0]: arrays[name] for name in arrays.files}
    except (ValueError, OSError) as error:
        raise CheckpointError(f"Not a .npz of plain arrays: {error}", where=str(file)) from error
