"""Jupyter notebooks (`nbformat` 3 and 4): the Python of their code cells, read and replaced.

Lines for IPython (`%matplotlib inline`, `!pip install …`, `env?`) are no Python. Each becomes an
expression that does nothing, with the line as its comment, and turns back into the line.
"""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

from rllib_compat.formats import files
from rllib_compat.neutral.budget import Budget
from rllib_compat.neutral.errors import CompatError
from rllib_compat.neutral.frozen import frozen

SUFFIX = ".ipynb"
_NOTEBOOKS = "Pass a notebook that Jupyter has saved, with code in it."
_LARGEST = 16 << 20  # bytes; pictures are in it
_MARK = "# notebook:"
_NEXT_CELL = re.compile(rf"^[ \t]*{_MARK} cell \d+\n", re.MULTILINE)
_FOR_IPYTHON = re.compile(r"^(\s*(?:[\w, ]+=\s*)?)([%!?].*|[\w.]+\?\??)$")
_AS_PYTHON = re.compile(rf"^(.*)None  {_MARK} (.*)$")
_TIMED = re.compile(r"^(\s*)%time\s+(.+)$")
_TIMED_AS_PYTHON = re.compile(rf"^(\s*)(.+)  {_MARK} %time$")

#: Magics of a whole cell whose lines are Python.
_PYTHON_MAGICS = ("%%time", "%%timeit", "%%capture", "%%prun")


@frozen
class Notebook:
    """A notebook.

    Attributes:
        text: The file.
        content: What it holds.
    """

    text: str
    content: dict[str, Any]

    def code(self) -> list[str]:
        """The Python of each code cell."""
        return [_python(_source(cell)) for cell in self._cells()]

    def joined(self) -> str:
        """The same as one source, in which a comment begins each cell."""
        return "".join(
            f"{_MARK} cell {number}\n{code}\n" for number, code in enumerate(self.code(), 1)
        )

    def with_code(self, joined: str) -> str:
        """The file with other code, joined as `joined` returns it.

        Raises:
            CompatError: It has another number of cells.
        """
        content = json.loads(self.text)
        new, cells = Notebook(self.text, content), _NEXT_CELL.split(joined)
        before, *after = cells
        if len(after) != len(new._cells()):
            raise CompatError(
                f"The notebook has {len(new._cells())} code cells, not {len(after)}.",
                fix="Exclude the notebook, and please report it.",
            )
        after[0] = before + after[0]
        for cell, code in zip(new._cells(), after, strict=True):
            lines = _ipython(code.removesuffix("\n"))
            if lines != _source(cell):
                kept = isinstance(cell[_key(cell)], str)
                cell[_key(cell)] = lines if kept else lines.splitlines(keepends=True)
        indent = re.search(r"\n( +)\S", self.text)
        return json.dumps(
            content, indent=len(indent[1]) if indent else None, ensure_ascii=self.text.isascii()
        ) + ("\n" if self.text.endswith("\n") else "")

    def place(self, line: int) -> tuple[int, int]:
        """The cell, and the line in it, of a line of `joined`."""
        for number, code in enumerate(self.code(), 1):
            if line <= (length := code.count("\n") + 2):
                return number, max(line - 1, 1)
            line -= length
        return max(len(self._cells()), 1), 1

    def _cells(self) -> list[dict[str, Any]]:
        sheets = self.content.get("worksheets") or [self.content]
        cells = [cell for sheet in sheets for cell in sheet.get("cells") or ()]
        return [cell for cell in cells if cell.get("cell_type") == "code"]


def read(path: Path) -> Notebook:
    """Reads a notebook.

    Raises:
        CompatError: It is none, or has no code cells.
    """
    budget, where = Budget(), str(path)
    data = files.read_bytes(path, budget, where, _LARGEST)
    content = files.parse_json(data, budget, where)
    try:
        notebook = Notebook(bytes(data).decode(), content)
        if notebook.code():
            return notebook
    except (AttributeError, KeyError, TypeError) as error:
        raise CompatError(
            "The file is not a Jupyter notebook.", where=str(path), fix=_NOTEBOOKS
        ) from error
    raise CompatError("The notebook has no code cells.", where=str(path), fix=_NOTEBOOKS)


def left_out(code: str) -> list[str]:
    """The lines of a cell's Python that are for IPython alone; of a whole cell, the first one."""
    lines = [found[2] for line in code.splitlines() if (found := _AS_PYTHON.match(line))]
    return lines[:1] if lines and _is_of_another_language(lines[0]) else lines


def written_file(code: str) -> tuple[str, str] | None:
    """The file that a cell writes (`%%writefile env.py`), and its text; None: it writes none."""
    first, _, text = _ipython(code).lstrip().partition("\n")
    magic, _, name = first.strip().partition(" ")
    return (name.strip(), text) if magic in ("%%writefile", "%%file") else None


def _is_of_another_language(line: str) -> bool:
    return line.startswith("%%") and not line.startswith(_PYTHON_MAGICS)


def _key(cell: dict[str, Any]) -> str:
    return "source" if "source" in cell else "input"  # which nbformat 3 had


def _source(cell: dict[str, Any]) -> str:
    lines = cell[_key(cell)]
    return lines if isinstance(lines, str) else "".join(lines)


def _python(source: str) -> str:
    try:
        ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        whole = _is_of_another_language(source.lstrip())
        return "\n".join(
            f"None  {_MARK} {line}" if whole else _line_as_python(line)
            for line in source.split("\n")
        )
    return source  # lines that look like magics are parts of texts


def _line_as_python(line: str) -> str:
    if timed := _TIMED.match(line):
        return f"{timed[1]}{timed[2]}  {_MARK} %time"
    found = _FOR_IPYTHON.match(line)
    return f"{found[1]}None  {_MARK} {found[2]}" if found else line


def _ipython(code: str) -> str:
    return "\n".join(_line_as_ipython(line) for line in code.split("\n"))


def _line_as_ipython(line: str) -> str:
    if timed := _TIMED_AS_PYTHON.match(line):
        return f"{timed[1]}%time {timed[2]}"
    found = _AS_PYTHON.match(line)
    return found[1] + found[2] if found else line
