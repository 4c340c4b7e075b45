"""Whoever types what the guide's first pages say sees what they say (`migration_guide/start`)."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import docs

pytestmark = [pytest.mark.ray, pytest.mark.newest]

PAGES = sorted((docs.ROOT / "migration_guide/start").glob("*.md"))
_CAPTION = re.compile(r":caption: (?P<file>\S+)\n\n(?P<text>.*)", re.DOTALL)


def commands(block: docs.Block) -> Iterator[tuple[str, list[str]]]:
    """The commands of a block, each with the lines that should come, in their order."""
    for part in block.body.removeprefix("$ ").split("\n$ "):
        command, *lines = part.splitlines()
        yield command, [line for line in lines if line.strip("… ")]


def require(expected: list[str], printed: str) -> None:
    """Each expected line is a part of a printed one, in order; `…` stands for anything."""
    left = iter(printed.splitlines())
    for line in expected:
        # Columns are as wide as what else is in them.
        pattern = ".*".join(r"\s+".join(map(re.escape, part.split())) for part in line.split("…"))
        assert any(re.search(pattern, found) for found in left), f"{line!r} is not in\n{printed}"


def type_command(command: str, folder: Path, expected: list[str], code: int = 0) -> None:
    """Runs a command as a reader of a page does; it ends with the code and prints what is there."""
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=os.environ | {"COLUMNS": docs.COLUMNS, "NO_COLOR": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == code, f"{command}: {done.stdout}"
    require(expected, done.stdout)


@pytest.mark.slow("it is a newcomer's first hour, each command a process of its own")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_start_page_says_is_what_happens(page: Path, tmp_path: Path) -> None:
    for block in docs.blocks(page):
        if file := _CAPTION.match(block.body):
            (tmp_path / file["file"]).write_text(file["text"], "utf-8")
        if block.language != "console":
            continue
        code = next((int(m.removeprefix("exit=")) for m in block.marks if "exit=" in m), 0)
        for command, expected in commands(block):
            if command.startswith("pip install "):
                continue
            type_command(command, tmp_path, expected, code)
