"""`ray.rllib.scripts` and `ray.rllib.common`: the command `rllib` of Ray 0.5 – 2.3, in Python."""

from __future__ import annotations

import argparse
from enum import Enum
from pathlib import Path

from rllib_compat.legacy import rllib_train, rollout

__all__ = ["EXAMPLE_USAGE", "FrameworkEnum", "SupportedFileType", "cli", "get_file_type"]

EXAMPLE_USAGE = """
rllib train --run PPO --env CartPole-v0
rllib evaluate checkpoint_10/checkpoint-10 --run PPO
"""


def cli() -> None:
    """Runs the command line: `train`, `evaluate` or `rollout`."""
    parser = argparse.ArgumentParser(
        description="Trains or plays an algorithm.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=EXAMPLE_USAGE,
    )
    commands = parser.add_subparsers(dest="command")
    known = {"train": rllib_train, "evaluate": rollout, "rollout": rollout}
    parsers = {
        name: module.create_parser(lambda name=name, **kwargs: commands.add_parser(name, **kwargs))
        for name, module in known.items()
    }
    options = parser.parse_args()
    if options.command is None:
        parser.print_help()
    else:
        known[options.command].run(options, parsers[options.command])


class FrameworkEnum(str, Enum):
    """Frameworks of configs."""

    tf = "tf"
    tf2 = "tf2"
    torch = "torch"


class SupportedFileType(str, Enum):
    """Kinds of experiment files."""

    yaml = "yaml"
    python = "python"


def get_file_type(config_file: str) -> SupportedFileType:
    """The kind of an experiment file.

    Raises:
        ValueError: Its name has another ending.
    """
    kinds = {".py": "python", ".yaml": "yaml", ".yml": "yaml"}
    kind = kinds.get(Path(config_file).suffix)
    if kind is None:
        raise ValueError(
            f"{config_file} is no experiment file, whose name ends in {', '.join(kinds)}."
        )
    return SupportedFileType(kind)
