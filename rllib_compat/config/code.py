"""A translation as the Python code that a person would have written.

Everything is built as a syntax tree, so that what is printed parses: no value of a config can
break out of its literal, and each name is imported once, under a name of its own. `ast.unparse`
writes one line however long it is; here, what does not fit gets a line for each entry, and strings
get the double quotes that the rest of the code has.
"""

from __future__ import annotations

import ast
import builtins
import keyword
import math
import sys
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

from rllib_compat import registry
from rllib_compat.neutral.deferred import PUBLIC, Deferred

#: The longest line that is written.
WIDTH = 92

#: The order in which Ray's own examples call the methods.
METHODS = (
    *("api_stack", "environment", "framework", "resources", "python_environment", "env_runners"),
    *("learners", "training", "rl_module", "multi_agent", "callbacks", "evaluation"),
    *("offline_data", "reporting", "checkpointing", "debugging", "fault_tolerance", "experimental"),
)


def python_code(
    algorithm: str, calls: Mapping[str, Mapping[str, Any]], *, adapted: bool = False
) -> str:
    """Writes the program that builds the same `AlgorithmConfig` as the translation does.

    Values that have no source form (lambdas, live objects) are named in a comment, and the call
    is left without them.

    Args:
        algorithm: The target algorithm.
        calls: Method of `AlgorithmConfig` → its arguments.
        adapted: Whether old behaviour that no call of `AlgorithmConfig` can say is to be added.
    """
    program = Program()
    cls = program.imported(registry.of(algorithm).home, f"{algorithm}Config")
    lines = ["config = (", f"    {ast.unparse(cls)}()"]
    for method in METHODS:
        if method in calls:
            lines += _call(program, method, calls[method])
    lines.append(")")
    if adapted:
        adapt = program.imported(PUBLIC, "adapt_config")
        lines.append(f"{ast.unparse(adapt)}(config)")
    return "\n".join([*program.import_lines(), "", *lines, ""])


def _call(program: Program, method: str, kwargs: Mapping[str, Any]) -> list[str]:
    written, notes = [], []
    for name, value in kwargs.items():
        source = program.expression(value)
        if source is None:
            program.lacks(name, value)
        else:
            written.append(ast.keyword(name, source))
        notes += program.notes
        program.notes.clear()
    call = ast.Call(ast.Name(f".{method}"), [], written)
    return [line for text in (format_expression(call, 4, notes),) for line in text.split("\n")]


class Program:
    """The names of a program that is being written, and what they are imported from."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self._imports: dict[tuple[str, str], str] = {}
        self._taken = {"config", *dir(builtins), *keyword.kwlist}

    def imported(self, module: str, name: str) -> ast.expr:
        """A name of a module; another one where the name is taken."""
        first, *rest = name.split(".")
        found: ast.expr = ast.Name(self._name(module, first, first))
        for part in rest:
            found = ast.Attribute(found, part, ast.Load())
        return found

    def module(self, name: str, alias: str = "") -> ast.expr:
        """A module itself."""
        return ast.Name(self._name("", name, alias or name))

    def _name(self, module: str, name: str, wanted: str) -> str:
        if (module, name) not in self._imports:
            number, free = 1, wanted
            while free in self._taken:
                number += 1
                free = f"{wanted}_{number}"
            self._taken.add(free)
            self._imports[module, name] = free
        return self._imports[module, name]

    def import_lines(self) -> list[str]:
        """The head of the program: modules, then names, by the alphabet."""
        plain, named = [], []
        for (module, name), resolve_policy_id in self._imports.items():
            also = [ast.alias(name, None if resolve_policy_id == name else resolve_policy_id)]
            if module:
                named.append(ast.unparse(ast.ImportFrom(module, also, 0)))
            else:
                plain.append(ast.unparse(ast.Import(also)))
        return [*sorted(plain), *([""] if plain else []), *sorted(named)]

    def lacks(self, what: str, value: object) -> None:
        """Says in a comment that something is left out, as it has no source form."""
        shown = " ".join(repr(value).split())
        shown = shown if len(shown) <= 60 else shown[:57] + "..."
        self.notes.append(f"{what}: {shown} has no source form; pass it here.")

    def call(self, function: ast.expr, /, *args: object, **kwargs: object) -> ast.expr | None:
        """A call, or None where one of the values has no source form."""
        positional = [self.expression(value) for value in args]
        named = {name: self.expression(value) for name, value in kwargs.items()}
        if None in positional or None in named.values():
            return None
        keywords = [ast.keyword(name, value) for name, value in named.items() if value]
        return ast.Call(function, [value for value in positional if value], keywords)

    def expression(self, value: object) -> ast.expr | None:
        """The source of a value, or None where it has none."""
        if isinstance(value, ast.expr):
            return value
        if isinstance(value, Deferred):
            return value.code(self)
        if isinstance(value, Enum):
            cls = self._found_in_its_module(type(value))
            return cls and ast.Attribute(cls, value.name, ast.Load())
        if value is None or value is Ellipsis or isinstance(value, (bool, bytes)):
            return ast.Constant(value)
        if isinstance(value, float):
            return _number(value)
        for kind in (str, int):
            if isinstance(value, kind):  # a numpy string is one, too
                return ast.Constant(kind(value))
        if isinstance(value, Mapping):
            return self._mapping(value)
        if type(value) in (list, tuple, set, frozenset):
            return self._sequence(value)
        return self._found_in_its_module(value)

    def _found_in_its_module(self, value: object) -> ast.expr | None:
        """A class or function by the place that it can be imported from."""
        module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
        if not isinstance(module, str) or not isinstance(name, str) or module == "__main__":
            return None
        if not all(part.isidentifier() for part in (*module.split("."), *name.split("."))):
            return None  # made inside a function
        found = sys.modules.get(module)
        for part in name.split(".") if found is not None else ():
            found = getattr(found, part, None)
        if found is not None and found is not value:
            return None  # another one has its name
        if module == "builtins":
            return ast.Name(name) if found is value else None
        return self.imported(module, name)

    def _mapping(self, value: Mapping[Any, Any]) -> ast.expr | None:
        if set(value) == {"grid_search"}:
            tune = self.imported("ray", "tune")
            return self.call(ast.Attribute(tune, "grid_search", ast.Load()), value["grid_search"])
        keys = [self.expression(key) for key in value]
        values = [self.expression(inner) for inner in value.values()]
        if None in keys or None in values:
            return None
        return ast.Dict([key for key in keys if key], [inner for inner in values if inner])

    def _sequence(self, value: Any) -> ast.expr | None:
        parts = [self.expression(item) for item in value]
        items = [item for item in parts if item is not None]
        if len(items) < len(parts):
            return None
        if isinstance(value, list):
            return ast.List(items, ast.Load())
        if isinstance(value, tuple):
            return ast.Tuple(items, ast.Load())
        display = ast.Set(sorted(items, key=ast.unparse))
        if isinstance(value, set):
            return display if items else ast.Call(ast.Name("set"), [], [])
        return ast.Call(ast.Name("frozenset"), [display] if items else [], [])


def _number(value: float) -> ast.expr:
    if math.isfinite(value):
        return ast.Constant(float(value))
    return ast.Call(ast.Name("float"), [ast.Constant(str(float(value)))], [])


def format_expression(node: ast.expr, indent: int, notes: Sequence[str] = ()) -> str:
    """The source of an expression that begins after `indent` blanks, with these before it.

    Args:
        node: The expression.
        indent: How far it is indented.
        notes: Comments before the arguments of a call.
    """
    return " " * indent + _over_lines(node, indent, notes=notes)


def _over_lines(node: ast.expr, indent: int, before: str = "", notes: Sequence[str] = ()) -> str:
    line = f"{before}{format_line(node)}"
    opened = _brackets(node)
    if opened is None or (not notes and indent + len(line) <= WIDTH):
        return line
    head, entries, tail = opened
    pad = " " * (indent + 4)
    rows = [f"{pad}# {note}" for note in notes]
    rows += [f"{pad}{_over_lines(entry, indent + 4, name)}," for name, entry in entries]
    return "\n".join([before + head, *rows, " " * indent + tail])


def format_line(node: ast.expr) -> str:
    """The source of an expression in one line."""
    if isinstance(node, ast.Constant):
        return _constant(node)
    if isinstance(node, ast.Attribute):
        return f"{format_line(node.value)}.{node.attr}"
    if isinstance(node, ast.Lambda):
        return f"{ast.unparse(ast.Lambda(node.args, ast.Constant(0)))[:-1]}{format_line(node.body)}"
    opened = _brackets(node)
    if opened is None:
        return ast.unparse(node)
    head, entries, tail = opened
    parts = [f"{before}{format_line(entry)}" for before, entry in entries]
    lone = "," if isinstance(node, ast.Tuple) and len(parts) == 1 else ""
    return f"{head}{', '.join(parts)}{lone}{tail}"


def _brackets(node: ast.expr) -> tuple[str, list[tuple[str, ast.expr]], str] | None:
    """The text before, in and after the brackets of a display or call; None for all others."""
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        return "{", [(f"{format_line(k)}: ", v) for k, v in pairs if k is not None], "}"
    if isinstance(node, ast.List):
        return "[", [("", item) for item in node.elts], "]"
    if isinstance(node, ast.Tuple):
        return "(", [("", item) for item in node.elts], ")"
    if isinstance(node, ast.Set):
        return "{", [("", item) for item in node.elts], "}"
    if isinstance(node, ast.Call):
        named = [(f"{word.arg}=", word.value) for word in node.keywords]
        return f"{format_line(node.func)}(", [*(("", item) for item in node.args), *named], ")"
    return None


def _constant(node: ast.Constant) -> str:
    text = ast.unparse(node)
    inner = text[1:-1]
    single = isinstance(node.value, str) and text.startswith("'")
    return f'"{inner}"' if single and '"' not in inner and "\\'" not in inner else text
