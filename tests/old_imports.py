"""What a script of an old Ray gets from its imports, name by name.

Every public name of `ray.rllib` and `ray.tune` in a wheel is asked for in each way in which code
loads a name. What comes is Ray's, this package's, a placeholder that says what to do when it is
used, or nothing::

    python -m tests.old_imports ray-1.13.0-*.whl        # a table
    python -m tests.old_imports -v ray-1.13.0-*.whl     # and the names that are no more
    python -m tests.old_imports --write ray-*.whl       # the guide's page
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from importlib import util
from pathlib import Path
from typing import Any

import gymnasium

from rllib_compat import legacy
from tests import old_names

#: Names by which modules know the libraries that they use; nobody imports these from there.
_LIBRARIES = {"F", "T", "flax", "jax", "nn", "tf", "tf1", "tfp", "tfv", "th", "torch", "tree"}
_NOT_IMPORTED = ("automl", "cluster_info", "examples")
_SCRIPT_VARIABLES = {"parser"}


def public_names(wheel: Path) -> Iterator[tuple[str, str]]:
    """Each public name of a wheel that another module may import, with its module."""
    for module, names in sorted(old_names.names_of(wheel).items()):
        parts = module.split(".")[1:]
        if any(part in _NOT_IMPORTED or part.startswith("_") for part in parts):
            continue
        for name in sorted(names - _LIBRARIES - _SCRIPT_VARIABLES):
            if not name.startswith("_") and name != "*":
                yield module, name


def by_statement(module: str, name: str) -> Any:
    """`from module import name` in a file of the user's."""
    return _run(f"from {module} import {name} as found", {"__name__": "user", "__file__": __file__})


def by_importlib(module: str, name: str) -> Any:
    """What configs do that name a class."""
    return getattr(importlib.import_module(module), name)


def by_exec(module: str, name: str) -> Any:
    """Code out of a text, whose namespace tells nothing."""
    return _run(f"from {module} import {name} as found", {})


def by_pkgutil(module: str, name: str) -> Any:
    """What resolves the names of plugins."""
    return pkgutil.resolve_name(f"{module}:{name}")


def in_notebook(module: str, name: str) -> Any:
    """A cell."""
    return _run(f"import {module}\nfrom {module} import {name} as found", {"__name__": "__main__"})


def by_plugin(module: str, name: str) -> Any:
    """A file that is loaded under a name that it hasn't."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "plugin.py")
        file.write_text(f"from {module} import {name} as found\n", encoding="utf-8")
        spec = util.spec_from_file_location("plugin", file)
        assert spec is not None
        assert spec.loader is not None
        plugin = util.module_from_spec(spec)
        spec.loader.exec_module(plugin)
    return plugin.found


def _run(code: str, namespace: dict[str, Any]) -> Any:
    exec(code, namespace)
    return namespace["found"]


#: The ways in which a name is loaded.
WAYS: Mapping[str, Callable[[str, str], Any]] = {
    "import statement": by_statement,
    "importlib": by_importlib,
    "exec": by_exec,
    "pkgutil": by_pkgutil,
    "notebook": in_notebook,
    "plugin file": by_plugin,
}


def kind_of(value: object) -> str:
    """Whose an object is: "Ray's", "ours" or a "placeholder"."""
    if legacy.is_removed(value):
        return "placeholder"
    home = getattr(value, "__module__", None) or type(value).__module__
    return "ours" if str(home).startswith("rllib_compat") else "Ray's"


def load(way: Callable[[str, str], Any], module: str, name: str) -> str:
    """Whose a name is, loaded in one way; "none" where there is nothing.

    Ray's modules about another library raise where that isn't installed, as they always did.
    """
    try:
        return kind_of(way(module, name))
    except ImportError as error:
        missing = error.name or ""
        about_ray = "ray" in missing.split(".") or "cannot import name" in str(error)
        return "none" if about_ray else "needs a library"
    except gymnasium.error.DependencyNotInstalled:
        return "needs a library"
    except (AttributeError, NameError):
        return "none"


#: What `load` tells.
KINDS = ("Ray's", "ours", "placeholder", "needs a library", "none")


#: The guide's page, which `--write` makes.
PAGE = Path(__file__).parents[1] / "migration_guide" / "old_imports.md"
_INTRODUCTION = """\
# What an old import gives

Under `rllib-compat run`, or after `rllib_compat.activate()`, each public name of `ray.rllib` and
`ray.tune` of an old Ray can be imported: by an import statement, `importlib`, `pkgutil`, code
that `exec` runs, a cell of a notebook, or the file of a plugin. What comes is Ray's own, wherever
it is today; or ours, where it is gone and has a meaning; or a placeholder, which may be named and
derived from, and says what to do when it is used. Policies of TensorFlow count as ours: they can
be named in a config, which trains with torch, and nothing else. Ray's modules about another
library raise where that is not installed, as they did. `python -m tests.old_imports --write
WHEEL…` counts, and writes this page.

"""


def main() -> None:
    """Prints a table of the wheels that are named on the command line, or writes the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("wheels", nargs="+", type=Path)
    parser.add_argument("-v", "--verbose", action="store_true", help="print each name that is gone")
    parser.add_argument("--write", action="store_true", help="write the guide's page")
    arguments = parser.parse_args()
    legacy.activate()
    rows = [_row("Ray", "way", "names", *KINDS, "Ray's or ours"), "|---" * (4 + len(KINDS)) + "|"]
    for wheel in arguments.wheels:
        names = list(public_names(wheel))
        told: dict[str, list[str]] = {}
        for way, loader in WAYS.items():
            found = {place: load(loader, *place) for place in names}
            count = Counter(found.values())
            numbers = [len(names), *(count[kind] for kind in KINDS)]
            share = sum(count[kind] for kind in KINDS[:2]) / len(names)
            told.setdefault(_row(*numbers, f"{share:.0%}"), []).append(way)
            if arguments.verbose:
                gone = {place: kind for place, kind in found.items() if kind in KINDS[2:]}
                print(
                    "\n".join(f"{way}: {kind}: {'.'.join(place)}" for place, kind in gone.items())
                )
        release = wheel.name.split("-")[1]
        for numbers_told, ways in told.items():
            each = "each" if len(ways) == len(WAYS) else ", ".join(ways)
            rows.append(f"| {release} | {each} {numbers_told}")
    table = "\n".join(rows) + "\n"
    print(table)
    if arguments.write:
        PAGE.write_text(_INTRODUCTION + table, "utf-8")


def _row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


if __name__ == "__main__":
    main()
