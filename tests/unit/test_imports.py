"""Who imports what: no module itself by way of others, and tests what rooms show.

Lazy imports, and those for types alone, count as well.
"""

import ast
import importlib
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import rllib_compat

ROOT = Path(rllib_compat.__file__).parent
TESTS = Path(__file__).parents[1]

#: So many of 100 test files import a module that is none of their business. It only falls.
MOST_PRIVATE = 32


def modules() -> dict[str, ast.Module]:
    """All modules of the package by name, parsed."""
    found = {}
    for file in ROOT.rglob("*.py"):
        parts = file.relative_to(ROOT.parent).with_suffix("").parts
        name = ".".join(parts).removesuffix(".__init__")
        found[name] = ast.parse(file.read_text("utf-8"), str(file))
    return found


def imported(tree: ast.AST, known: dict[str, ast.Module]) -> set[str]:
    """The modules of the package that a module imports, in functions and for types, too."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            assert not node.level, "all imports are absolute"
            inside = {f"{node.module}.{alias.name}" for alias in node.names}
            names |= {name if name in known else node.module for name in inside}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names & known.keys()


@pytest.fixture(scope="module")
def imports():
    known = modules()
    return {name: imported(tree, known) - {name} for name, tree in known.items()}


def test_no_module_imports_itself_by_way_of_others(imports):
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        pytest.fail("a circle: " + " ← ".join(error.args[1]))


#: Rooms whose files are their interface: they stand where old code imported Ray's and gym's, or are
#: a module for what of Ray each touches.
MODULES_ARE_PUBLIC = ("agents", "execution", "gym", "ray_versions", "tune")


@cache
def interface(room: str) -> tuple[set[str], set[str]]:
    """The names that a room lists in its `__init__`, and those of them that are whole files."""
    tree = ast.parse(Path(ROOT, room, "__init__.py").read_text("utf-8"))
    names, bound = set(), set()
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            bound |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.FunctionDef):
            bound.add(node.name)
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            names |= set(ast.literal_eval(node.value))
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_FILES":
            if isinstance(node.value, ast.DictComp):  # what the files themselves say
                return set(importlib.import_module(f"rllib_compat.{room}").__all__), set()
            for file, listed in ast.literal_eval(node.value).items():
                public = {name.rpartition(" as ")[2] for name in listed}
                names |= public
                bound |= public if file else set()
    return names, {name for name in names - bound if Path(ROOT, room, f"{name}.py").exists()}


def is_public(module: str, name: str) -> bool:
    """Whether tests may import a name from a module: one of `rllib_compat`, or of a room."""
    _, room, *files = module.split(".")
    if room in MODULES_ARE_PUBLIC or Path(ROOT, f"{room}.py").exists():
        return True
    names, modules = interface(room)
    return files[0] in modules if files else name in names


def private_imports(tree: ast.AST) -> set[str]:
    """What a file imports of the package that is no room's interface."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("rllib_compat."):
            names = [(node.module, alias.name) for alias in node.names]
            found |= {".".join(each) for each in names if not is_public(*each)}
    return found


def test_tests_import_what_rooms_show():
    files = list(TESTS.rglob("test_*.py"))
    private = {file: private_imports(ast.parse(file.read_text("utf-8"))) for file in files}
    named = {
        str(file.relative_to(TESTS)): sorted(names) for file, names in private.items() if names
    }
    assert 100 * len(named) <= MOST_PRIVATE * len(files), named
