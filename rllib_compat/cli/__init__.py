"""The command line: one module a verb.

Exit codes: 0, it worked; 1, it worked, and what was asked for is not so (`verify`, `config`,
`doctor`, `upgrade`, a part of `convert --recursive`, or warnings with `--strict`); 2, it could not
be done.
Data goes to stdout; progress and errors go to stderr.
"""

from __future__ import annotations

import difflib
import importlib
import os
import sys
from typing import Any, NoReturn

import click

from rllib_compat.cli import output
from rllib_compat.formats.files import disk_errors
from rllib_compat.neutral.errors import CompatError
from rllib_compat.neutral.extras import PACKAGE, install_command
from rllib_compat.neutral.text import printable

__all__ = ["main"]

# A verb is imported when it is called: `inspect` must not wait for what `convert` needs.
_VERBS = {
    "artifacts": "List, check and unpack what simulators wrote, inside a checkpoint.",
    "completion": "Print what bash, zsh or fish needs to complete commands and options.",
    "config": "Translate a legacy config and show the result for every key.",
    "convert": "Convert a legacy checkpoint and prove that the numbers are the same.",
    "demo": "Convert a bundled Ray 0.8.5 checkpoint, load it and continue training.",
    "doctor": "Show what is installed, what works with it, and what to install.",
    "evaluate": "Play a trained policy of any Ray, as `rllib rollout` and `evaluate` did.",
    "inspect": "Show what is inside a checkpoint, without Ray and without running it.",
    "plot": "Plot what trials of any Ray have logged, in one picture.",
    "recorder": "Print a script that records outputs in the old Ray, for --recorded.",
    "report": "Write one HTML page about what became of an archive.",
    "run": "Run an old script unchanged, with the imports of its Ray.",
    "train": "Train from an experiment file or from flags, as `rllib train` did.",
    "upgrade": "Rewrite old code, for this package or for the installed Ray alone.",
    "verify": "Compare an old checkpoint with a converted one.",
}

# The same verb by its name in another Ray.
_ALIASES = {"rollout": "evaluate"}

#: What the extra `ray` brings.
_IN_THE_EXTRA = ("ray", "torch", "gymnasium", "tree", "pyarrow", "lz4", "msgpack_numpy")

#: Libraries that have processes, threads or files to close when Python ends.
_STARTING = ("ray", "torch", "tensorflow", "pyarrow", "matplotlib")


class _Verbs(click.Group):
    """A group that knows its commands by name and imports the one that is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return sorted(_VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        cmd_name = _ALIASES.get(cmd_name, cmd_name)
        if cmd_name not in _VERBS:
            return None
        command: click.Command = importlib.import_module(f"rllib_compat.cli.{cmd_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in (*_VERBS, *_ALIASES) and not args[0].startswith("-"):
            near = difflib.get_close_matches(args[0], (*_VERBS, *_ALIASES), n=1)
            hint = f" Did you mean '{near[0]}'?" if near else ""
            ctx.fail(f"No such command '{args[0]}'.{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(sorted(_VERBS.items()))


@click.group(
    cls=_Verbs,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 it worked, 1 see the verb's help, 2 failed.",
)
@click.version_option(package_name=PACKAGE, prog_name=PACKAGE)
def _cli() -> None:
    """Legacy RLlib configs and checkpoints (Ray 0.5 - 2.x) on the installed Ray."""


def _not_installed(error: Exception) -> str | None:
    """The library of the extra `ray` that an error is about, if it is about one."""
    name = error.name if isinstance(error, ModuleNotFoundError) else None
    library = (name or "").partition(".")[0]
    return library if library in _IN_THE_EXTRA else None


def main(args: list[str] | None = None) -> NoReturn:
    """Runs the command line; every error of this package takes three lines, and is exit 2."""
    code = _run(args)
    if args is None and not any(library in sys.modules for library in _STARTING):
        _end_at_once(code)
    sys.exit(code)


def _end_at_once(code: int) -> None:
    """Ends a process that started nothing: to free each object takes a quarter of `inspect`."""
    try:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    except OSError:
        return  # the reader has gone: Python's own end handles that
    os._exit(code)


def _wants_json(args: list[str] | None) -> bool:
    """Whether an error is also data; the arguments of `run` are its script's."""
    given = sys.argv[1:] if args is None else args
    return "--json" in given and given[0] != "run"


def _run(args: list[str] | None) -> int:
    """Runs a verb, prints its errors, and returns the exit code."""
    try:
        with disk_errors("the command line"):
            code: Any = _cli.main(args, prog_name=PACKAGE, standalone_mode=False)
    except CompatError as error:
        output.error(error, as_json=_wants_json(args))
        return error.exit_code
    except click.ClickException as error:
        if _wants_json(args):
            output.error(error, as_json=True)
        else:
            error.show()
    except click.Abort:
        click.echo("aborted", err=True)
    except Exception as error:
        if (missing := _not_installed(error)) is not None:
            click.echo(f"error: This needs {missing}, which is not installed.", err=True)
            click.echo(f"  to do: {install_command('ray')}", err=True)
            return 2
        import traceback

        # Not one of ours: Ray's, or a bug here. Exit code 1 would mean "done, with findings".
        click.echo(printable(traceback.format_exc(), lines=True), err=True, nl=False)
        click.secho(f"failed: unexpected {type(error).__name__}, see above", fg="red", err=True)
        if _wants_json(args):
            output.emit_json({"error": {"kind": type(error).__name__, "found": str(error)}})
    else:
        return code if isinstance(code, int) else 0
    return 2
