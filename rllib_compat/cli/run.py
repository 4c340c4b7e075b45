"""`rllib-compat run`: an old script, as it is."""

from __future__ import annotations

import ast
import atexit
import linecache
import os
import runpy
import sys
import traceback
from pathlib import Path
from types import ModuleType

import click

from rllib_compat.cli import options, output
from rllib_compat.formats import notebooks
from rllib_compat.formats.paths import local_path
from rllib_compat.neutral.public import frames_of_others
from rllib_compat.ray_versions import releases

_OURS = str(Path(__file__).parents[1])


@click.command(
    "run",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.option("-m", "module", is_flag=True, help="SCRIPT is a module's name, as for `python -m`.")
@click.option("--report", is_flag=True, help="At the end, list what was redirected, and where to.")
@click.option(
    "--package",
    "packages",
    multiple=True,
    metavar="NAME",
    help="An installed package that is old code, too; may be repeated.",
)
@click.option(
    "--old-ray",
    metavar="PATH",
    help="A Ray (a wheel, site-packages, a folder ray) whose ray.rllib.examples.env, .models and "
    ".policy the script imports.",
)
@options.legacy_ray_option
@click.argument("script")
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def command(
    module: bool,
    report: bool,
    packages: tuple[str, ...],
    old_ray: str | None,
    legacy_ray: str,
    script: str,
    args: tuple[str, ...],
) -> int:
    """Run a script that was written for Ray 0.5 - 2.x, without a change to it.

    Its imports of ray, gym and numpy get what they got then, as far as that can exist on the
    installed Ray. Everything after SCRIPT goes to the script. SCRIPT may be a Jupyter notebook:
    its code cells are run, and lines for IPython alone (`!pip install`) are named and left out.

    \b
      rllib-compat run train.py 200
      rllib-compat run -m my_project.train
    """
    script = script if module else str(local_path(script))
    if not module and not Path(script).is_file():
        raise click.UsageError(f"There is no script {script}.")
    from rllib_compat import legacy

    legacy.activate(packages, old_ray=old_ray, legacy_ray=legacy_ray)
    if report:
        atexit.register(_print_report)
    sys.argv = [script, *args]
    try:
        if module:
            sys.path.insert(0, str(Path.cwd()))
            runpy.run_module(script, run_name="__main__", alter_sys=True)
        else:
            _run_file(script)
    except Exception as error:  # whatever the script raises, as Python would print it
        if isinstance(error, ModuleNotFoundError) and error.name == "ray":
            releases.installed()  # where it is not, this says what to install
        _print_as_pythons(error)
        if package := _old_package(error):
            newer = "uninstall gym, which is too new for it; " if "gym" in sys.modules else ""
            output.progress(
                f"{package} is installed and was written for an old Ray or gym, too: {newer}"
                f"`rllib-compat run --package {package} …` gives it the old imports."
            )
        return 1
    return 0


def _run_file(script: str) -> None:
    path = Path(script)
    # As Python does it: modules beside the script are found, by Ray's workers, too.
    sys.path.insert(0, str(path.resolve().parent))
    main = ModuleType("__main__")
    main.__file__ = os.path.abspath(script)  # noqa: PTH100 - as Python writes it
    sys.modules["__main__"] = main
    if path.suffix == notebooks.SUFFIX:
        _run_cells(path, main)
    else:
        exec(compile(path.read_bytes(), script, "exec"), main.__dict__)  # noqa: S102 - as asked


def _run_cells(path: Path, main: ModuleType) -> None:
    """Runs a notebook's code, and shows what the last line of each cell is, as Jupyter does."""
    main.__dict__.setdefault("display", print)
    for number, code in enumerate(notebooks.read(path).code(), 1):
        if written := notebooks.written_file(code):
            Path(written[0]).write_text(written[1])
            continue
        for line in notebooks.left_out(code):
            output.progress(f"{path}, cell {number}: left out: {line}")
        name = f"{path}, cell {number}"
        linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
        tree = ast.parse(code, name)
        last = tree.body[-1:] if tree.body and isinstance(tree.body[-1], ast.Expr) else []
        begin = ast.Module(tree.body[: len(tree.body) - len(last)], [])
        for part in (begin, ast.Interactive(last)):
            mode = "exec" if part is begin else "single"
            exec(compile(part, name, mode), main.__dict__)  # noqa: S102 - what was asked


def _print_as_pythons(error: Exception) -> None:
    """The traceback from the script on, without the frames of this package before it."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename.startswith(_OURS):
        frames = frames.tb_next
    traceback.print_exception(type(error), error, frames or error.__traceback__)


def _old_package(error: Exception) -> str | None:
    """The installed package that has looked for something that only an old Ray or gym had."""
    asked = (getattr(error, "name", None) or "") if isinstance(error, ImportError) else ""
    if asked.partition(".")[0] not in ("ray", "gym") and not _is_about_random_numbers(error):
        return None
    file = frames_of_others(error)[-1].filename
    _, installed, file = file.rpartition(f"{os.sep}site-packages{os.sep}")
    package = file.partition(os.sep)[0].removesuffix(".py")
    return package if installed and package != "ray" else None


def _is_about_random_numbers(error: Exception) -> bool:
    """Whether `randint` or `rand` was asked of numpy's newer generator, which gym 0.22 took up."""
    return isinstance(error, AttributeError) and type(error.obj).__name__ == "Generator"


def _print_report() -> None:
    from rllib_compat.legacy.modules import redirected

    click.echo("\nredirected imports:", err=True)
    for (place, name), now in sorted(redirected.items()):
        click.echo(f"  {place}.{name} -> {now}", err=True)
