"""The base of all rules: a transformer that reports its changes, and adds notes otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Any, ClassVar

import libcst as cst
from libcst.metadata import PositionProvider, QualifiedNameProvider, QualifiedNameSource

from rllib_compat.config.era import AUTO
from rllib_compat.config.evidence import Evidence
from rllib_compat.neutral.frozen import frozen

#: What a note in the code begins with.
TODO = "# TODO(rllib-compat: {rule}) "


class Target(str, Enum):
    """What the code is rewritten for."""

    #: Today's Ray alone, on its new API stack.
    NATIVE = "native"
    #: This package, which keeps the old API.
    COMPAT = "compat"


@frozen
class Change:
    """One row of the report.

    Attributes:
        rule: The rule's id.
        line: The line in the file as the rule found it.
        message: What was changed; or what has to be done by hand.
        done: Whether it was changed.
    """

    rule: str
    line: int
    message: str
    done: bool


#: What brings old names back where they stood.
LEGACY = "rllib_compat.legacy"


#: The end of a comment on a line that is left alone.
_KEEP = "rllib-compat: keep"


class Rule(cst.CSTTransformer):  # type: ignore[misc]  # libcst need not be installed
    """A rule on one file.

    Attributes:
        id: Its name, which is its file's.
        targets: For what it is.
        legacy_ray: The Ray that the file was written for, as `translate` takes it.
        evidence: What shows it beside a config.
    """

    METADATA_DEPENDENCIES = (PositionProvider, QualifiedNameProvider)
    id: ClassVar[str]
    targets: ClassVar[Sequence[Target]] = (Target.NATIVE, Target.COMPAT)
    legacy_ray: str = AUTO
    evidence: Sequence[Evidence] = ()

    def __init__(self, target: Target) -> None:
        super().__init__()
        self.target = target
        self.changes: list[Change] = []
        self._notes: list[list[str]] = []
        self._head: set[str] = set()
        self._has_legacy = False
        #: Import statements that the changed code needs, as text.
        self.imports: dict[str, None] = {}

    def changed(self, node: cst.CSTNode, message: str) -> None:
        """Tells a change."""
        self.changes.append(Change(self.id, self._line(node), message, done=True))

    def bring_back(self, node: cst.CSTNode, message: str) -> None:
        """Imports what keeps old names valid, and says so unless the file did already."""
        if not self._has_legacy:
            self.changed(node, f"{message} by `import {LEGACY}`")
        self.imports[LEGACY] = None

    def todo(self, node: cst.CSTNode, message: str) -> None:
        """Leaves a note above the statement that `node`, of the original tree, is in."""
        self.changes.append(Change(self.id, self._line(node), message, done=False))
        if self._notes:
            self._notes[-1].append(TODO.format(rule=self.id) + message)

    def keep(self, comments: Iterable[Any]) -> None:
        """Moves comments of what is replaced above the statement."""
        if self._notes:
            self._notes[-1] += [str(comment.value) for comment in comments]

    def names(self, node: cst.CSTNode) -> set[str]:
        """What a name or attribute of the original tree is called where it was imported from."""
        found = self.get_metadata(QualifiedNameProvider, node, set())
        return {name.name for name in found if name.source is not QualifiedNameSource.BUILTIN}

    def on_visit(self, node: cst.CSTNode) -> bool:
        """Opens a place for notes where a statement begins."""
        if isinstance(node, cst.Module):  # comments above the first statement are the file's
            self._head = {line.comment.value for line in node.header if line.comment}
            self._has_legacy = f"import {LEGACY}" in node.code
        if _is_statement(node):
            self._notes.append([])
        return not _is_kept(node) and bool(super().on_visit(node))

    def on_leave(self, original_node: object, updated_node: object) -> Any:
        """Writes the notes of a statement above it."""
        if _is_kept(original_node):
            self._notes.pop()
            return updated_node
        left = super().on_leave(original_node, updated_node)
        if not _is_statement(original_node):
            return left
        notes = [note for note in self._notes.pop() if note not in self._head]
        if not notes:
            return left
        if isinstance(left, cst.FlattenSentinel):
            first, *rest = left
            return cst.FlattenSentinel([_noted(first, notes), *rest])
        return left if isinstance(left, cst.RemovalSentinel) else _noted(left, notes)

    def _line(self, node: cst.CSTNode) -> int:
        position = self.get_metadata(PositionProvider, node, None)
        return position.start.line if position is not None else 0


def _is_kept(node: object) -> bool:
    """Whether it is a line that ends with the comment `# rllib-compat: keep`."""
    comment = (
        node.trailing_whitespace.comment if isinstance(node, cst.SimpleStatementLine) else None
    )
    return comment is not None and comment.value.endswith(_KEEP)


def _is_statement(node: cst.CSTNode) -> bool:
    return isinstance(node, (cst.SimpleStatementLine, cst.BaseCompoundStatement))


def _noted(statement: Any, notes: Iterable[str]) -> Any:
    """A statement with comments above it, those that are not there yet."""
    there = {line.comment.value for line in statement.leading_lines if line.comment}
    new = [note for note in dict.fromkeys(notes) if note not in there]
    lines = [cst.EmptyLine(comment=cst.Comment(note)) for note in new]
    return statement.with_changes(leading_lines=[*statement.leading_lines, *lines])


def dotted(node: cst.CSTNode | None) -> str | None:
    """`a.b.c` of a name or of attributes of names; None for anything else."""
    if isinstance(node, cst.Name):
        return str(node.value)
    if isinstance(node, cst.Attribute):
        before = dotted(node.value)
        return before and f"{before}.{node.attr.value}"
    return None


def text_of(node: cst.CSTNode) -> str:
    """A node as source code."""
    return str(cst.Module([]).code_for_node(node))


def string_of(node: cst.CSTNode | None) -> str | None:
    """The value of a string literal, or None."""
    value = node.evaluated_value if isinstance(node, cst.SimpleString) else None
    return value if isinstance(value, str) else None
