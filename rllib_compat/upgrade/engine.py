"""Runs rules over source code, one after the other."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Collection
from pathlib import Path

import libcst as cst
from libcst.codemod import CodemodContext
from libcst.codemod.visitors import AddImportsVisitor
from libcst.metadata import MetadataWrapper

from rllib_compat.config.era import AUTO
from rllib_compat.config.evidence import Evidence, find_evidence, limits, of_code
from rllib_compat.neutral.errors import CompatError
from rllib_compat.neutral.frozen import frozen
from rllib_compat.registry.keys import TODAY
from rllib_compat.upgrade.rule import LEGACY, Change, Rule, Target
from rllib_compat.upgrade.rules import RULES


@frozen
class Upgraded:
    """One file before and after.

    Attributes:
        before: The source as it was.
        after: The source as it is now.
        changes: What was changed, and what has to be done by hand.
    """

    before: bytes
    after: bytes
    changes: tuple[Change, ...]

    def diff(self, path: str) -> str:
        """The unified diff, empty if nothing was changed."""
        before, after = (
            text.decode("utf-8", "replace").splitlines(keepends=True)
            for text in (self.before, self.after)
        )
        path = path.lstrip("/")
        return "".join(difflib.unified_diff(before, after, f"a/{path}", f"b/{path}"))


def upgrade(
    source: bytes,
    target: Target,
    *,
    only: Collection[str] = (),
    skip: Collection[str] = (),
    path: str = "<source>",
    legacy_ray: str = AUTO,
) -> Upgraded:
    """Rewrites a file.

    Args:
        source: The file's content.
        target: What it is rewritten for.
        only: The ids of the rules to apply; empty: all.
        skip: The ids of rules that are not applied.
        path: Its name, for errors, and to find the requirement files beside it.
        legacy_ray: The Ray that it was written for, as `translate` takes it.

    Raises:
        CompatError: It is no Python that can be parsed, or a rule has no such name.
    """
    rules = _chosen(target, only, skip)
    try:
        evidence = _evidence(_parsed(source, path), path)
        if b"\0" in source:  # which LibCST takes, and Python does not
            raise ValueError("it has null bytes")
        module = cst.parse_module(source)
    except (cst.ParserSyntaxError, SyntaxError, ValueError, LookupError) as error:
        # SyntaxError and LookupError: of the encoding that it declares.
        raise CompatError(
            f"{path} cannot be parsed: {error}",
            where=path,
            fix="correct the syntax, or exclude the file; convert Python 2 with 2to3 first",
        ) from error
    changes: list[Change] = []
    wrapper = MetadataWrapper(module, unsafe_skip_copy=True)
    for kind in rules:
        rule = kind(target)
        rule.legacy_ray, rule.evidence = legacy_ray, evidence
        changed = wrapper.visit(rule)
        if rule.changes or rule.imports:  # else what is known of the module's names still holds
            module = _with_imports(changed, rule.imports)
            wrapper = MetadataWrapper(module, unsafe_skip_copy=True)
        changes += rule.changes
    lost = _lost(evidence, module, path) if target is Target.COMPAT else (None, None)
    if any(lost) and legacy_ray != TODAY:
        module = _with_era(module, *(lost if legacy_ray == AUTO else (legacy_ray, legacy_ray)))
        changes.append(Change("imports", 1, "`written_for` says what the imports showed", True))
    return Upgraded(source, module.bytes, tuple(sorted(changes, key=lambda c: (c.done, c.line))))


def _parsed(source: bytes, path: str) -> ast.Module:
    """The program, as Python reads it; an empty one where it is older Python.

    Raises:
        CompatError: It is nested so deeply that a parser would end the process.
    """
    try:
        return ast.parse(source)
    except (RecursionError, MemoryError) as error:
        raise _too_deep(path) from error
    except (SyntaxError, ValueError) as error:  # old Python, which the other parser may know
        if "too many" in str(error) or "too complex" in str(error):
            raise _too_deep(path) from error
    return ast.Module([], [])


def _evidence(program: ast.Module, path: str) -> tuple[Evidence, ...]:
    """What shows which Ray a program was written for."""
    return (*of_code(program), *find_evidence(Path(path).parent))


def _lost(
    before: Collection[Evidence], module: cst.Module, path: str
) -> tuple[str | None, str | None]:
    """The oldest and the newest Ray that the code showed, and no longer shows."""
    after = _evidence(_parsed(module.bytes, path), path)
    return limits(one for one in before if one not in after)


def _with_era(module: cst.Module, first: str | None, last: str | None) -> cst.Module:
    """A module that says behind its imports for which Rays it was written."""
    module = _with_imports(module, ["rllib_compat"])
    given = {"first": first, "last": last}
    arguments = ", ".join(f'{name}="{ray}"' for name, ray in given.items() if ray)
    new = cst.parse_statement(f"rllib_compat.written_for({arguments})")
    places = [place for place, part in enumerate(module.body, 1) if _imports(part)]
    place = max(places, default=0)
    new = new.with_changes(leading_lines=[cst.EmptyLine(indent=False)])
    return module.with_changes(body=[*module.body[:place], new, *module.body[place:]])


def _imports(part: cst.CSTNode) -> bool:
    of_line = part.body if isinstance(part, cst.SimpleStatementLine) else ()
    return any(isinstance(one, (cst.Import, cst.ImportFrom)) for one in of_line)


def _too_deep(path: str) -> CompatError:
    return CompatError("The code is nested too deeply.", where=path, fix="exclude the file")


def _chosen(target: Target, only: Collection[str], skip: Collection[str]) -> list[type[Rule]]:
    known = {rule.id for rule in RULES}
    if unknown := sorted({*only, *skip} - known):
        raise CompatError(
            f"There is no rule {unknown[0]!r}.",
            where="--only, --skip",
            fix=f"the rules are {', '.join(sorted(known))}",
        )
    return [
        rule
        for rule in RULES
        if target in rule.targets and (not only or rule.id in only) and rule.id not in skip
    ]


def _with_imports(module: cst.Module, imports: Collection[str]) -> cst.Module:
    """A module with import statements (`module:name`) that it has not got yet."""
    if not imports:
        return module
    context = CodemodContext()
    for wanted in imports:
        if wanted == LEGACY:
            module = _begun(module)
            continue
        name, _, obj = wanted.partition(":")
        AddImportsVisitor.add_needed_import(context, name, obj or None)
    others = any(wanted != LEGACY for wanted in imports)
    return AddImportsVisitor(context).transform_module(module) if others else module


def _begun(module: cst.Module) -> cst.Module:
    """A module whose first import is `LEGACY`, after its docstring and what Python wants first."""
    line = f"import {LEGACY}"
    if any(module.code_for_node(part).strip().endswith(line) for part in module.body):
        return module
    place = 0
    for place, part in enumerate(module.body):
        text = module.code_for_node(part).strip()
        docstring = place == 0 and module.get_docstring() is not None
        if not docstring and "from __future__" not in text:
            break
    new = cst.parse_statement(line)
    if place and isinstance(new, cst.SimpleStatementLine):
        new = new.with_changes(leading_lines=[cst.EmptyLine(indent=False)])
    return module.with_changes(body=[*module.body[:place], new, *module.body[place:]])
