"""`rllib-compat upgrade`: old code rewritten for good."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rllib_compat.cli import options, output
from rllib_compat.formats import notebooks
from rllib_compat.formats.atomic import atomic_file
from rllib_compat.formats.files import disk_errors, open_regular, walk
from rllib_compat.neutral.errors import CompatError
from rllib_compat.neutral.extras import install_command
from rllib_compat.neutral.text import printable

if TYPE_CHECKING:
    from rllib_compat.upgrade import Target, Upgraded

# Folders that hold other people's code.
_SKIPPED = {"__pycache__", "build", "dist", "node_modules", "site-packages", "venv"}


def _list_rules(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    """Prints each rule with the first line of its description."""
    if wanted:
        _require_extras()
        from rllib_compat.upgrade.rules import RULES

        for rule in RULES:
            output.say(f"{rule.id:<18}{(rule.__doc__ or '').partition(chr(10))[0]}")
        context.exit()


@click.command("upgrade")
@click.argument("paths", nargs=-1, required=True, type=options.LocalPath(exists=True))
@click.option(
    "--to",
    "target",
    type=click.Choice(["compat", "native"]),
    default="compat",
    help="Code that uses this package, or only the installed Ray.  [default: compat]",
)
@click.option("--diff", is_flag=True, help="Print the changes, and write nothing.")
@click.option("--check", is_flag=True, help="Write nothing; exit with 1 if something would change.")
@options.legacy_ray_option
@click.option(
    "--exit-zero-even-if-changed",
    "exit_zero",
    is_flag=True,
    help="End with 0 unless a file failed.",
)
@click.option(
    "--list-rules",
    is_flag=True,
    is_eager=True,
    callback=_list_rules,
    expose_value=False,
    help="List the rules, and end.",
)
@click.option("--only", multiple=True, metavar="RULE", help="Apply this rule; may be repeated.")
@click.option("--skip", multiple=True, metavar="RULE", help="Leave this rule out.")
@options.json_option
@options.verbose_option
def command(
    paths: tuple[Path, ...],
    target: str,
    diff: bool,
    check: bool,
    exit_zero: bool,
    as_json: bool,
    **how: Any,
) -> int:
    """Rewrites old RLlib code in PATHS: Python files, Jupyter notebooks and folders of them.

    Formatting and comments stay. What can't be rewritten gets a comment, `# TODO(rllib-compat:
    RULE)`, and a row in the report. A second run changes nothing. A line that ends with
    `# rllib-compat: keep` is left alone.

    \b
    Examples:
      rllib-compat upgrade train.py --diff
      rllib-compat upgrade train.py evaluate.py my_project --to native
      rllib-compat upgrade my_project --check --skip numpy-names
    """
    _require_extras()
    from rllib_compat.upgrade import Target

    found, failed = {}, []
    for file in dict.fromkeys(file for path in paths for file in _files(path)):
        try:
            found[file] = _upgraded(
                file,
                Target(target),
                only=how["only"],
                skip=how["skip"],
                legacy_ray=how["legacy_ray"],
            )
            if not (diff or check):
                _write(file, found[file])
        except CompatError as error:
            if (file,) == paths or error.where in (None, "--only, --skip"):
                raise
            found.pop(file, None)
            failed.append(error)
    if as_json:
        output.emit_json([_plain(file, upgraded) for file, upgraded in found.items()])
    else:
        _show(found, how["verbose"], diff=diff, check=check)
    for one in failed:
        output.progress(f"error: {one}")
    if failed:
        return 2
    left = any(not change.done for upgraded in found.values() for change in upgraded.changes)
    would_change = any(upgraded.after != upgraded.before for upgraded in found.values())
    return int(not exit_zero and (left or (check and would_change)))


def _require_extras() -> None:
    """Refuses where code can't be read, or where the installed Ray's names are not known."""
    for package in ("libcst", "ray"):
        if importlib.util.find_spec(package) is None:
            raise CompatError(
                f"This needs {package}, which is not installed.",
                fix=install_command("ray", "upgrade"),
            )


def _files(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        if not path.is_file():
            raise CompatError(
                "The path is neither a file nor a folder.", where=str(path), fix="Check the path."
            )
        yield path
        return
    for folder, names, files in walk(path):
        names[:] = sorted(n for n in names if n not in _SKIPPED and not n.startswith("."))
        kinds = (".py", notebooks.SUFFIX)
        paths = (folder / name for name in sorted(files) if name.endswith(kinds))
        # A pipe would be waited for, and what a link leads to may lie anywhere.
        yield from (file for file in paths if file.is_file() and not file.is_symlink())


def _upgraded(file: Path, target: Target, **which: Any) -> Upgraded:
    """A file before and after; a notebook's cells together, as later ones use earlier ones."""
    from rllib_compat.upgrade import Upgraded, upgrade

    if file.suffix != notebooks.SUFFIX:
        return upgrade(_read(file), target, path=str(file), **which)
    notebook = notebooks.read(file)
    found = upgrade(notebook.joined().encode(), target, path=str(file), **which)
    changes = []
    for change in found.changes:
        cell, line = notebook.place(change.line)
        changes.append(replace(change, line=line, message=f"cell {cell}: {change.message}"))
    after = notebook.text
    if found.after != found.before:
        after = notebook.with_code(found.after.decode())
    return Upgraded(notebook.text.encode(), after.encode(), tuple(changes))


def _read(file: Path) -> bytes:
    with disk_errors(file), open_regular(file) as source:
        return source.read()


def _write(file: Path, upgraded: Upgraded) -> None:
    """Writes what has changed; a file that was named is written where a link leads."""
    if upgraded.after == upgraded.before:
        return
    with atomic_file(file.resolve()) as new:
        new.write(upgraded.after)


def _plain(file: Path, upgraded: Upgraded) -> dict[str, Any]:
    return {
        "file": str(file),
        "changed": upgraded.after != upgraded.before,
        "diff": upgraded.diff(file.as_posix()),
        "changes": [
            {"rule": c.rule, "line": c.line, "message": c.message, "done": c.done}
            for c in upgraded.changes
        ],
    }


def _show(found: dict[Path, Upgraded], verbose: int, *, diff: bool, check: bool) -> None:
    if diff:
        for file, upgraded in found.items():
            click.echo(printable(upgraded.diff(file.as_posix()), lines=True), nl=False)
    rows = [
        ("changed" if c.done else "to do", f"{file}:{c.line}", c.rule, c.message)
        for file, upgraded in found.items()
        for c in upgraded.changes
        if verbose or not c.done
    ]
    if rows:
        output.table("", ("what", "where", "rule", "message"), rows)
    changed = [file for file, upgraded in found.items() if upgraded.after != upgraded.before]
    for file in changed if check else ():
        click.echo(f"would change {printable(str(file))}")
    every = [change for upgraded in found.values() for change in upgraded.changes]
    done = sum(change.done for change in every)
    click.echo(
        f"{len(found)} files, {len(changed)} changed: "
        f"{done} changes (-v shows them), {len(every) - done} to do by hand"
    )
