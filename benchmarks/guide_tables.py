"""Tables that benchmarks write into the guide's pages."""

from __future__ import annotations

from pathlib import Path

GUIDE = Path(__file__).parents[1] / "migration_guide"
PAGE = GUIDE / "removed_algorithms.md"
END = "<!-- until here -->\n"


def begin(script: str) -> str:
    """The line of the page above the table of a script."""
    return f"<!-- benchmarks/{script}.py -->\n"


def put(script: str, table: str, page: Path = PAGE) -> None:
    """Puts a table in the place of the one that the script had made before."""
    before, rest = page.read_text("utf-8").split(begin(script))
    _, after = rest.split(END, 1)
    page.write_text(before + begin(script) + table + "\n" + END + after, "utf-8")
