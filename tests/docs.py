"""The project's documents as the tests see them: their code blocks, links and recorded outputs.

Outputs in blocks that are headed `console checked` are compared with those of real runs. After a
change of what the command line prints, `python -m tests.docs` writes them anew; read the diff.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).parents[1]
COLUMNS = "88"
#: What the README shows.
PICTURE = ROOT / "migration_guide/_static/terminal.svg"

_FENCE = re.compile(
    r"^(?P<indent> *)```(?P<info>[^\n`]*)\n(?P<body>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL
)
#: What a block has in it that trains, for which Ray is started.
TRAINS = re.compile(r"Trainer\(|tune\.run|ray\.init|build_algo|\.load\(")
_LINK = re.compile(r"(?<!!)\[[^\]\n]+\]\((?P<target>[^)\s]+)\)")


@dataclass(frozen=True)
class Block:
    """A fenced block of a document."""

    document: Path
    line: int
    info: str
    body: str

    @property
    def language(self) -> str:
        return self.info.split()[0] if self.info.split() else ""

    @property
    def marks(self) -> list[str]:
        return self.info.split()[1:]

    @property
    def commands(self) -> list[list[str]]:
        """What is typed in it, as words; a line is split where a shell would start a command."""
        prompts = [line[2:] for line in self.body.splitlines() if line.startswith("$ ")]
        lines = prompts or [line for line in self.body.splitlines() if line and line[0].isalpha()]
        return [
            shlex.split(command, comments=True)
            for line in lines
            for command in re.split(r" && | \| ", line)
        ]

    def __str__(self) -> str:
        return f"{self.document.relative_to(ROOT)}:{self.line}"


def documents() -> list[Path]:
    """Everything that a person reads, the guide's pages included."""
    guide = ROOT / "migration_guide"
    pages = [page for page in guide.rglob("*.md") if "_build" not in page.parts]
    others = [ROOT / "benchmarks/README.md", ROOT / "tests/legacy/README.md"]
    return sorted([*ROOT.glob("*.md"), *pages, *others])


def blocks(document: Path) -> Iterator[Block]:
    """The fenced blocks of a document."""
    text = document.read_text("utf-8")
    for match in _FENCE.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        yield Block(document, line, match["info"].strip(), match["body"])


def links(document: Path) -> Iterator[str]:
    """The targets of a document's links, code left out."""
    text = re.sub(r"`[^`\n]*`", "", _FENCE.sub("", document.read_text("utf-8")))
    return (match["target"] for match in _LINK.finditer(text))


@contextlib.contextmanager
def _at_top() -> Iterator[None]:
    before = Path.cwd()
    os.chdir(ROOT)
    try:
        yield
    finally:
        os.chdir(before)


def run(command: list[str]) -> str:
    """What the command line prints for a command, run from the repository's top."""
    from rllib_compat.cli import main

    out = io.StringIO()
    environment = {"COLUMNS": COLUMNS, "NO_COLOR": "1", "TERM": "dumb"}
    with (
        mock.patch.dict(os.environ, environment),
        _at_top(),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(out),
        contextlib.suppress(SystemExit),
    ):
        main(command[1:])
    return "".join(line.rstrip() + "\n" for line in out.getvalue().splitlines())


def checked(block: Block) -> str:
    """The body that a `checked` block should have."""
    (prompt,) = [line for line in block.body.splitlines() if line.startswith("$ ")]
    return f"{prompt}\n{run(shlex.split(prompt[2:]))}"


def picture() -> str:
    """The conversion of the page on checkpoints as an SVG of a terminal."""
    from rich.console import Console

    page = ROOT / "migration_guide/convert_a_checkpoint.md"
    (text,) = (block.body for block in blocks(page) if "old against new" in block.body)
    text = text.replace("rllib_compat/demo_data", "old")
    console = Console(record=True, width=int(COLUMNS), file=io.StringIO())
    console.print(text.rstrip(), highlight=False, markup=False)
    svg = console.export_svg(title="rllib-compat", unique_id="terminal")
    return re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.DOTALL)  # of another host


def main() -> None:
    """Writes the recorded outputs and the README's picture again."""
    PICTURE.write_text(picture(), "utf-8")
    for document in documents():
        text = document.read_text("utf-8")
        for block in blocks(document):
            if "checked" in block.marks:
                old = f"```{block.info}\n{block.body}```"
                text = text.replace(old, f"```{block.info}\n{checked(block)}```")
        if text != document.read_text("utf-8"):
            document.write_text(text, "utf-8")
            print(document.relative_to(ROOT))


if __name__ == "__main__":
    main()
