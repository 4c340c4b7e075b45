"""A translation as the Python code that a person would have written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rllib_compat.config.rule import words
from rllib_compat.neutral.later import Later

WIDTH = 92

# The order in which Ray's own examples call the methods.
METHODS = words(
    "api_stack environment framework resources python_environment env_runners learners training "
    "rl_module multi_agent callbacks evaluation offline_data reporting checkpointing debugging "
    "fault_tolerance experimental"
)


def python_code(algorithm: str, calls: Mapping[str, Mapping[str, Any]]) -> str:
    """Writes the program that builds the same `AlgorithmConfig` as the translation does.

    Values that have no source form (lambdas, live objects) are named in a comment, and the call
    is left without them.
    """
    imports = {f"from ray.rllib.algorithms.{algorithm.lower()} import {algorithm}Config"}
    lines = ["config = (", f"    {algorithm}Config()"]
    for method in METHODS:
        if method in calls:
            lines += _call(method, calls[method], imports)
    lines.append(")")
    plain = sorted(line for line in imports if line.startswith("import "))
    named = sorted(line for line in imports if line.startswith("from "))
    head = [*plain, "", *named] if plain else named
    return "\n".join([*head, "", *lines, ""])


def _call(method: str, kwargs: Mapping[str, Any], imports: set[str]) -> list[str]:
    written, missing = [], []
    for name, value in kwargs.items():
        text = expression(value, imports)
        if text is None:
            missing.append(
                f"        # {name}: {_one_line(value)} has no source form; pass it here."
            )
        else:
            written.append((name, text))
    line = f"    .{method}({', '.join(f'{n}={t}' for n, t in written)})"
    if not missing and len(line) <= WIDTH:
        return [line]
    return [
        f"    .{method}(",
        *missing,
        *(f"        {name}={_wrapped(text, 8)}," for name, text in written),
        "    )",
    ]


def _one_line(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else text[:57] + "..."


def _wrapped(text: str, indent: int) -> str:
    """A long dict or list display over several lines, one entry a line."""
    if len(text) + indent <= WIDTH or text[0] not in "{[" or text[-1] not in "}]":
        return text
    inner = _split(text[1:-1])
    pad = " " * (indent + 4)
    rows = []
    for part in inner:
        key, colon, value = part.partition(": ") if text[0] == "{" else ("", "", part)
        rows.append(f"{pad}{key}{colon}{_wrapped(value, indent + 4)},")
    return "\n".join([text[0], *rows, " " * indent + text[-1]])


def _split(text: str) -> list[str]:
    """The entries of a display: the parts between its outermost commas."""
    parts, depth, quote, start = [], 0, "", 0
    for i, char in enumerate(text):
        if quote:
            quote = "" if char == quote and text[i - 1] != "\\" else quote
        elif char in "'\"":
            quote = char
        elif char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    parts.append(text[start:].strip())
    return [part for part in parts if part]


def expression(value: Any, imports: set[str]) -> str | None:
    """The source of a value, or None where it has none; adds the imports that it needs."""
    if isinstance(value, Later):
        return value.code(imports)
    if isinstance(value, str) and not set(value) & {'"', "\\"} and value.isprintable():
        return f'"{value}"'
    if value is None or isinstance(value, (bool, int, str, bytes)):
        return repr(value)
    if isinstance(value, float):
        return repr(value) if value == value and abs(value) != float("inf") else f"float('{value}')"
    if isinstance(value, Mapping):
        return _mapping(value, imports)
    if type(value) in (list, tuple, set, frozenset):
        return _sequence(value, imports)
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", "")
    if module and name.isidentifier() and module not in ("builtins", "__main__"):
        imports.add(f"from {module} import {name}")
        return str(name)
    return None


def _mapping(value: Mapping[Any, Any], imports: set[str]) -> str | None:
    if set(value) == {"grid_search"}:
        inner = expression(value["grid_search"], imports)
        imports.add("from ray import tune")
        return None if inner is None else f"tune.grid_search({inner})"
    pairs = [(expression(k, imports), expression(v, imports)) for k, v in value.items()]
    if any(k is None or v is None for k, v in pairs):
        return None
    return "{" + ", ".join(f"{k}: {v}" for k, v in pairs) + "}"


def _sequence(value: Any, imports: set[str]) -> str | None:
    items = [expression(item, imports) for item in value]
    if any(item is None for item in items):
        return None
    inner = ", ".join(
        sorted(map(str, items)) if isinstance(value, (set, frozenset)) else map(str, items)
    )
    if isinstance(value, list):
        return f"[{inner}]"
    if isinstance(value, tuple):
        return f"({inner},)" if len(items) == 1 else f"({inner})"
    if not items:
        return "set()"
    return f"{{{inner}}}" if isinstance(value, set) else f"frozenset({{{inner}}})"
