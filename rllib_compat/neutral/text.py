"""Text from files as it may be shown: on one line, and without what a terminal obeys."""

from __future__ import annotations


def printable(text: str, *, lines: bool = False) -> str:
    """Text from a file, without control characters, half surrogates and changes of direction.

    Line feeds stay what they are with `lines`.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or (lines and c == "\n") else repr(c)[1:-1] for c in text)


def indented(text: str) -> str:
    """Text whose further lines can't be taken for lines of ours, which stand further left."""
    first, *more = printable(text, lines=True).split("\n")
    return "\n".join(
        [first, *(line if line.startswith("    ") else f"    {line}" for line in more)]
    )
