"""`rllib-compat completion`: what a shell needs to complete commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from rllib_compat.neutral.extras import PACKAGE


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> int:
    """Prints a script that lets SHELL complete commands, options and file names.

    \b
    Examples:
      rllib-compat completion bash >> ~/.bashrc
      rllib-compat completion zsh >> ~/.zshrc
      rllib-compat completion fish > ~/.config/fish/completions/rllib-compat.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None
    group = click.get_current_context().find_root().command
    click.echo(kind(group, {}, PACKAGE, "_RLLIB_COMPAT_COMPLETE").source())
    return 0
