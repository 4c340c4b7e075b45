"""What this repository has in common with other software, word for word.

    python -m tests.originality ray-1.13.0-*.whl gym-0.21.0.tar.gz path/to/site-packages/ray

Compares the tracked files with wheels, source archives and folders, and prints each run of 15
tokens of code and of 8 words in a row (in docstrings, comments, messages and documents) that both
have. The exit status is 1 if there is one. Facts may be alike, and are not compared: imports,
signatures, arguments that are handed on by their own name, spaces, and constants.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import contextlib
import io
import re
import subprocess
import sys
import tarfile
import textwrap
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from zlib import crc32

import numpy as np

TOKENS = 15
WORDS = 8

_TOKEN = re.compile(
    r"""
      (?P<prose>\#[^\n]*
        | [rRbBuUfF]{0,2}(?:\"{3}(?:\\.|[^\\])*?\"{3} | '{3}(?:\\.|[^\\])*?'{3}))
    | (?P<text>[rRbBuUfF]{0,2}(?:"(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'))
    | (?P<code>\w+ | \*\*=? | //=? | >>=? | <<=? | -> | :=? | [-+*/%&|^=!<>@]=? | [^\s\w])
    """,
    re.VERBOSE | re.DOTALL,
)
_WORD = re.compile(r"[^\W_]+(?:['’_.][^\W_]+)*|[.!?;:](?=\s|$)")
_PLACEHOLDER = re.compile(r"\{[^{}]*\}")
_BUILTINS = frozenset(dir(builtins))
_SPACES = {"Box", "Dict", "Discrete", "MultiBinary", "MultiDiscrete", "Tuple"}
_SKIPPED = ("tests/originality.py",)


@dataclass
class Stream:
    """Tokens or words of a file, or of many: the hash of each, and where it stands.

    Attributes:
        hashes: One a token; 0 where a run ends.
        lines: The line of each.
    """

    hashes: list[int] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)

    def add(self, token: str, line: int) -> None:
        """Adds a token."""
        self.hashes.append(crc32(token.encode()) or 1)
        self.lines.append(line)

    def end_run(self, line: int) -> None:
        """Lets no run go on."""
        self.hashes.append(0)
        self.lines.append(line)


@dataclass
class Text:
    """What is compared of a file.

    Attributes:
        code: The tokens of its code.
        prose: The words of its sentences.
    """

    code: Stream = field(default_factory=Stream)
    prose: Stream = field(default_factory=Stream)


def read_python(source: str, facts: Iterable[tuple[int, int]] = ()) -> Text:
    """The tokens of a module's code, without docstrings and comments; and its sentences.

    Args:
        source: The module.
        facts: From which line and column on (as one number each, `line * 1000 + column`) up to
            which others code is not compared.
    """
    text = Text()
    starts = [0, *(match.end() for match in re.finditer("\n", source))]
    spans = sorted(facts)
    line, after_text = 0, False
    for match in _TOKEN.finditer(source):
        while line + 1 < len(starts) and starts[line + 1] <= match.start():
            line += 1
        token = match[0]
        if match.lastgroup == "prose":
            _read_sentences(token.lstrip("#"), line + 1, text.prose)
            continue
        if match.lastgroup == "text":  # texts that follow each other are one message
            _read_sentences(_PLACEHOLDER.sub(" ", token), line + 1, text.prose)
        elif after_text:
            text.prose.end_run(line + 1)
        after_text = match.lastgroup == "text"
        place = (line + 1) * 1000 + match.start() - starts[line]
        if any(first <= place < last for first, last in spans):
            text.code.end_run(line + 1)
        else:
            text.code.add(token.lstrip("rRbBuUfF") if token[-1] in "\"'" else token, line + 1)
    return text


def read_document(source: str) -> Text:
    """The sentences of a document, and the code of its blocks of Python."""
    text = Text()
    language, block = None, []
    for number, line in enumerate(source.splitlines(), 1):
        if fence := re.match(r"\s*```\W*(\w*)", line):
            if language == "python":
                _read_block(block, number - len(block), text.code)
            language, block = (fence[1] if language is None else None), []
        elif language is not None:
            block.append(line)
        else:
            for cell in line.split("|"):
                _read_sentences(cell, number, text.prose)
                if "|" in line:
                    text.prose.end_run(number)
    return text


def _read_block(lines: list[str], first: int, code: Stream) -> None:
    source = textwrap.dedent("\n".join(lines))
    facts: list[tuple[int, int]] = []
    with contextlib.suppress(SyntaxError):  # of a part of a program, facts are compared, too
        facts = list(facts_of(source))
    found = read_python(source, facts).code
    code.hashes += found.hashes
    code.lines += [first + line - 1 for line in found.lines]


def _read_sentences(source: str, line: int, prose: Stream) -> None:
    for number, part in enumerate(source.splitlines() or [""], line):
        if not part.strip():
            prose.end_run(number)
        for word in _WORD.findall(part):
            if word in ".!?;:":
                prose.end_run(number)
            else:
                prose.add(word.lower(), number)


def facts_of(source: str) -> Iterator[tuple[int, int]]:
    """Where a module has imports, signatures, names that are handed on, and constants alone."""
    for node in ast.walk(ast.parse(source)):
        if _has_a_head(node):
            yield _start(node), _start(node.body[0])
        elif _is_import(node) or _is_data(node) or _hands_a_name_on(node):
            yield _start(node), node.end_lineno * 1000 + node.end_col_offset


def _has_a_head(node: ast.AST) -> bool:
    """Whether it begins with a signature, or asks whether this is the main module."""
    if isinstance(node, ast.If):
        return "__main__" in ast.unparse(node.test)
    return isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef)


def _is_import(node: ast.AST) -> bool:
    return isinstance(node, ast.Import | ast.ImportFrom)


def _start(node: ast.stmt | ast.expr) -> int:
    return node.lineno * 1000 + node.col_offset


def _hands_a_name_on(node: ast.AST) -> bool:
    """Whether it is `name=name` in a call, or `self.name = name`."""
    if isinstance(node, ast.keyword):
        return isinstance(node.value, ast.Name) and node.value.id == node.arg
    if not isinstance(node, ast.Assign):
        return False
    target = node.targets[0]
    return (
        isinstance(target, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == target.attr
    )


def _is_data(node: ast.AST) -> bool:
    """Whether it is a constant, a display or a call of constants, a space, a base's constructor."""
    if isinstance(node, ast.Assign):
        return ast.unparse(node.targets[0]).isupper() and _is_constant(node.value)
    if isinstance(node, ast.Call):
        called = ast.unparse(node.func).rpartition(".")[2]
        inner = [*node.args, *(keyword.value for keyword in node.keywords)]
        constants = len(inner) > 1 and all(map(_is_constant, inner))
        return constants or called in _SPACES or called == "__init__"
    return isinstance(node, ast.Dict | ast.List | ast.Tuple | ast.Set) and _is_constant(node)


def _is_constant(node: ast.AST) -> bool:
    if isinstance(node, ast.Name):
        return node.id in _BUILTINS or node.id.isupper()
    if isinstance(node, ast.Attribute):  # `np.float32`
        return isinstance(node.value, ast.Name) and node.value.id != "self"
    if isinstance(node, ast.Dict):
        return all(map(_is_constant, [*filter(None, node.keys), *node.values]))
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return all(map(_is_constant, node.elts))
    if isinstance(node, ast.UnaryOp):
        return _is_constant(node.operand)
    return isinstance(node, ast.Constant) or _is_data(node)


def grams(stream: Stream, length: int) -> np.ndarray:
    """One number for each run of `length` tokens; 0 where a run ends within."""
    tokens = np.array(stream.hashes, np.uint64)
    if len(tokens) < length:
        return np.zeros(0, np.uint64)
    count = len(tokens) - length + 1
    sums, whole = np.zeros(count, np.uint64), np.ones(count, bool)
    for offset in range(length):
        part = tokens[offset : offset + count]
        sums = sums * np.uint64(0x9E3779B97F4A7C15) + part
        whole &= part != 0
    return np.where(whole, sums, 0)


@dataclass
class Index:
    """The runs of all files of other software, and which file has each.

    Attributes:
        runs: Sorted.
        files: The number of a file with each.
    """

    runs: np.ndarray
    files: np.ndarray

    @classmethod
    def of(cls, streams: list[Stream], length: int) -> Index:
        """The runs of some files."""
        parts = [grams(stream, length) for stream in streams]
        runs = np.concatenate([np.zeros(0, np.uint64), *parts])
        files = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
        runs, first = np.unique(runs, return_index=True)
        return cls(runs, files[first])

    def find(self, stream: Stream, length: int) -> Iterator[tuple[int, int, int, int]]:
        """First line, last line, number of tokens and the other file of each run in a file."""
        ours = grams(stream, length)
        if not len(ours) or not len(self.runs):
            return
        at = np.searchsorted(self.runs, ours).clip(max=len(self.runs) - 1)
        alike = np.flatnonzero((self.runs[at] == ours) & (ours != 0))
        for run in np.split(alike, np.flatnonzero(np.diff(alike) > length) + 1):
            if len(run):
                last = run[-1] + length - 1
                file = int(self.files[at[run[0]]])
                yield stream.lines[run[0]], stream.lines[last], int(last - run[0] + 1), file


def others(paths: Iterable[Path]) -> Iterator[tuple[str, str]]:
    """Name and text of each Python file and document of wheels, archives and folders."""
    for path in paths:
        if path.is_dir():
            for file in sorted(path.rglob("*")):
                if _is_compared(file.name) and file.is_file():
                    yield (
                        f"{path.name}/{file.relative_to(path)}",
                        file.read_text("utf-8", "replace"),
                    )
        elif path.name.endswith(".tar.gz"):
            with tarfile.open(path) as archive:
                for member in archive:
                    content = archive.extractfile(member) if _is_compared(member.name) else None
                    if content:
                        wrapped = io.TextIOWrapper(content, "utf-8", "replace")
                        yield f"{path.name}: {member.name}", wrapped.read()
        else:
            with zipfile.ZipFile(path) as wheel:
                for name in wheel.namelist():
                    if _is_compared(name):
                        yield f"{path.name}: {name}", wheel.read(name).decode("utf-8", "replace")


def ours() -> Iterator[tuple[str, str]]:
    """Name and text of each tracked Python file and document."""
    root = Path(__file__).parents[1]
    listed = subprocess.run(
        ["git", "ls-files"], cwd=root, capture_output=True, text=True, check=True
    ).stdout
    for name in listed.splitlines():
        if _is_compared(name) and name not in _SKIPPED:
            yield name, (root / name).read_text("utf-8")


def _is_compared(name: str) -> bool:
    return name.endswith((".py", ".md", ".rst"))


def _read(name: str, source: str, *, without_facts: bool = False) -> Text:
    if not name.endswith(".py"):
        return read_document(source)
    return read_python(source, list(facts_of(source)) if without_facts else ())


def main() -> int:
    """Compares, prints, and says by its exit status whether anything is alike."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("software", nargs="+", type=Path, metavar="WHEEL")
    arguments = parser.parse_args()
    names, texts = [], []
    for name, source in others(arguments.software):
        names.append(name)
        texts.append(_read(name, source))
    code = Index.of([text.code for text in texts], TOKENS)
    prose = Index.of([text.prose for text in texts], WORDS)
    found = 0
    for name, source in ours():
        text = _read(name, source, without_facts=True)
        for what, stream, index, length in (
            ("tokens", text.code, code, TOKENS),
            ("words", text.prose, prose, WORDS),
        ):
            for first, last, count, file in index.find(stream, length):
                found += 1
                print(f"{name}:{first}-{last}: {count} {what} as in {names[file]}")
    print(f"{found} alike, in {len(names)} files of other software")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
