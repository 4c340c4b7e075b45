"""Imports from where things stood: `ray.rllib.agents`, `ray.tune`, `gym`."""

from __future__ import annotations

from typing import Any

import libcst as cst

from rllib_compat.upgrade.places import ByLegacy, Gone, Place, find
from rllib_compat.upgrade.rule import LEGACY, Rule, Target, dotted


class Imports(Rule):
    """Imports names from where they stand today."""

    id = "imports"

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> Any:
        """Rewrites the import statements of a line."""
        if not any(isinstance(p, (cst.Import, cst.ImportFrom)) for p in original_node.body):
            return updated_node
        parts = [new for old in original_node.body for new in (self._parts(old) or [old])]
        if parts == list(original_node.body):
            return updated_node
        if len(original_node.body) > 1:
            parts = [part.with_changes(semicolon=cst.MaybeSentinel.DEFAULT) for part in parts]
        first = updated_node.with_changes(body=[parts[0]])
        rest = [cst.SimpleStatementLine([part]) for part in parts[1:]]
        if rest:
            rest[-1] = rest[-1].with_changes(trailing_whitespace=first.trailing_whitespace)
            first = first.with_changes(trailing_whitespace=cst.TrailingWhitespace())
        return cst.FlattenSentinel([first, *rest])

    def _parts(self, node: object) -> list[cst.BaseSmallStatement]:
        if isinstance(node, cst.Import):
            return self._import(node)
        if isinstance(node, cst.ImportFrom) and not isinstance(node.names, cst.ImportStar):
            return self._import_from(node)
        return []

    def _import(self, node: cst.Import) -> list[cst.BaseSmallStatement]:
        """`import a.b` and `import a.b as c`."""
        kept, made = [], []
        for alias in node.names:
            module = dotted(alias.name) or ""
            place = find(module, "", self.target)
            bound = alias.asname.name if alias.asname else None
            self._report(node, place, module)
            if not isinstance(place, Place):
                kept.append(alias)
            elif bound is None and "." in module:
                self.todo(node, f"import {place.module} instead, and name what is used of it")
                kept.append(alias)
            else:
                name = dotted(bound) or module
                made.append(_module_as(place.module, name))
                self.changed(node, f"{module} is {place.module}")
        if not made:
            return []
        head = [node.with_changes(names=_without_comma(kept))] if kept else []
        return [*head, *made]

    def _import_from(self, node: cst.ImportFrom) -> list[cst.BaseSmallStatement]:
        """`from a.b import c as d, e`."""
        module = dotted(node.module)
        if node.relative or module is None:
            return []
        # What stays comes first: notes are about it, and are written above the first statement.
        homes: dict[str, list[cst.ImportAlias]] = {module: []}
        moved = []
        for alias in node.names:
            name = str(alias.name.value)
            place = find(module, name, self.target)
            self._report(node, place, f"{module}.{name}")
            if not isinstance(place, Place):
                homes.setdefault(module, []).append(alias)
                continue
            moved.append(f"{module}.{name} is {place.module}.{place.name}")
            homes.setdefault(place.module, []).append(_renamed(alias, place.name))
        for message in moved:
            self.changed(node, message)
        if not moved:
            return []
        homes = {home: aliases for home, aliases in homes.items() if aliases}
        if len(homes) == 1:
            (home,) = homes
            names = node.names if list(node.names) == homes[home] else _without_comma(homes[home])
            return [node.with_changes(module=_expression(home), names=names)]
        return [
            cst.ImportFrom(_expression(home), _without_comma(aliases))
            for home, aliases in homes.items()
        ]

    def _report(self, node: cst.CSTNode, place: object, what: str) -> None:
        """Tells what is not rewritten, and brings back what can be."""
        if isinstance(place, Gone):
            self.todo(node, place.why)
        if isinstance(place, ByLegacy):
            self.bring_back(node, f"{what} is brought back")
        if isinstance(place, Gone) and place.is_old and self.target is Target.COMPAT:
            self.imports[LEGACY] = None  # so that it can be named, and raises when it is used


def _renamed(alias: cst.ImportAlias, name: str) -> cst.ImportAlias:
    """The same alias of another name, known by the one that the code uses."""
    used = alias.asname.name if alias.asname else alias.name
    if name == alias.name.value:
        return alias
    if name == used.value:
        return alias.with_changes(name=cst.Name(name), asname=None)
    return alias.with_changes(
        name=cst.Name(name),
        asname=cst.AsName(
            used,
            whitespace_before_as=cst.SimpleWhitespace(" "),
            whitespace_after_as=cst.SimpleWhitespace(" "),
        ),
    )


def _module_as(module: str, name: str) -> cst.BaseSmallStatement:
    """The statement that binds a module to a name."""
    parent, _, last = module.rpartition(".")
    if not parent:
        text = f"import {module}" + ("" if module == name else f" as {name}")
    elif last == name:
        text = f"from {parent} import {last}"
    else:
        text = f"import {module} as {name}"
    line = cst.parse_statement(text)
    assert isinstance(line, cst.SimpleStatementLine)
    return line.body[0]


def _without_comma(aliases: list[cst.ImportAlias]) -> list[cst.ImportAlias]:
    return [alias.with_changes(comma=cst.MaybeSentinel.DEFAULT) for alias in aliases]


def _expression(name: str) -> Any:
    return cst.parse_expression(name)
