"""Nothing in the package imports itself by way of others, lazily or for types alone, either."""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import rllib_compat

ROOT = Path(rllib_compat.__file__).parent


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
