"""Lays expressions out over lines, as a person or a formatter would.

`ast.unparse` writes one line however long it is. Here, what does not fit gets a line for each
entry, and strings get the double quotes that the rest of the code has.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

WIDTH = 92


def laid_out(node: ast.expr, indent: int, notes: Sequence[str] = ()) -> str:
    """The source of an expression that begins after `indent` blanks, with these before it.

    Args:
        node: The expression.
        indent: How far it is indented.
        notes: Comments, which stand before the arguments of a call.
    """
    return " " * indent + _over_lines(node, indent, notes=notes)


def _over_lines(node: ast.expr, indent: int, before: str = "", notes: Sequence[str] = ()) -> str:
    line = f"{before}{one_line(node)}"
    opened = _opened(node)
    if opened is None or (not notes and indent + len(line) <= WIDTH):
        return line
    head, entries, tail = opened
    pad = " " * (indent + 4)
    rows = [f"{pad}# {note}" for note in notes]
    rows += [f"{pad}{_over_lines(entry, indent + 4, name)}," for name, entry in entries]
    return "\n".join([before + head, *rows, " " * indent + tail])


def one_line(node: ast.expr) -> str:
    """The source of an expression in one line."""
    if isinstance(node, ast.Constant):
        return _constant(node)
    if isinstance(node, ast.Attribute):
        return f"{one_line(node.value)}.{node.attr}"
    if isinstance(node, ast.Lambda):
        return f"{ast.unparse(ast.Lambda(node.args, ast.Constant(0)))[:-1]}{one_line(node.body)}"
    opened = _opened(node)
    if opened is None:
        return ast.unparse(node)
    head, entries, tail = opened
    parts = [f"{before}{one_line(entry)}" for before, entry in entries]
    lone = "," if isinstance(node, ast.Tuple) and len(parts) == 1 else ""
    return f"{head}{', '.join(parts)}{lone}{tail}"


def _opened(node: ast.expr) -> tuple[str, list[tuple[str, ast.expr]], str] | None:
    """What stands before, in and after the brackets of a display or call; None for all others."""
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        return "{", [(f"{one_line(k)}: ", v) for k, v in pairs if k is not None], "}"
    if isinstance(node, ast.List):
        return "[", [("", item) for item in node.elts], "]"
    if isinstance(node, ast.Tuple):
        return "(", [("", item) for item in node.elts], ")"
    if isinstance(node, ast.Set):
        return "{", [("", item) for item in node.elts], "}"
    if isinstance(node, ast.Call):
        named = [(f"{word.arg}=", word.value) for word in node.keywords]
        return f"{one_line(node.func)}(", [*(("", item) for item in node.args), *named], ")"
    return None


def _constant(node: ast.Constant) -> str:
    text = ast.unparse(node)
    inner = text[1:-1]
    single = isinstance(node.value, str) and text.startswith("'")
    return f'"{inner}"' if single and '"' not in inner and "\\'" not in inner else text
