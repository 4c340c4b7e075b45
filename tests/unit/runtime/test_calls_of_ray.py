"""What the package calls of Ray by a name that it imports takes these arguments in every Ray."""

import ast
import contextlib
import importlib
import inspect
from pathlib import Path

import pytest

import rllib_compat

pytestmark = pytest.mark.matrix


def imported(tree):
    """What a module imports from Ray, by its name there; not what this Ray lacks."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("ray."):
            with contextlib.suppress(ImportError):
                module = importlib.import_module(node.module)
                found |= {a.asname or a.name: getattr(module, a.name, None) for a in node.names}
    return {name: value for name, value in found.items() if callable(value)}


def calls(tree, names):
    """Each call of one of them that says all its arguments, with the signature."""
    for node in ast.walk(tree):
        called = names.get(getattr(getattr(node, "func", None), "id", ""))
        if called is None or any(isinstance(a, ast.Starred) for a in node.args):
            continue
        if all(keyword.arg for keyword in node.keywords):
            with contextlib.suppress(ValueError):  # compiled, and tells none
                yield node, inspect.signature(called)


def test_calls_have_the_arguments_that_this_ray_takes():
    count = 0
    for file in Path(rllib_compat.__file__).parent.rglob("*.py"):
        text = file.read_text("utf-8")
        if "from ray." not in text:
            continue
        tree = ast.parse(text)
        for node, signature in calls(tree, imported(tree)):
            count += 1
            told = {keyword.arg: None for keyword in node.keywords}
            try:
                signature.bind(*[None] * len(node.args), **told)
            except TypeError as error:
                pytest.fail(f"{file}:{node.lineno}: {ast.unparse(node)}: {error}")
    assert count > 100
