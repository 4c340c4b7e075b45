"""What the rules on environments share: methods of a class, and what they return."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, ClassVar

import libcst as cst

from rllib_compat.upgrade.rule import Rule, Target

_KEYWORDS = "def f(self, *, seed=None, options=None): pass"


class EnvClasses(Rule):
    """Rewrites `reset` and `step` of classes with certain bases.

    Attributes:
        bases: What the base classes are called where they were imported from.
    """

    targets = (Target.NATIVE,)
    bases: ClassVar[Collection[str]] = ()

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self._classes: list[bool] = []
        self._functions: list[str | None] = []

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        """Looks whether it is one."""
        named = {name for base in node.bases for name in self.names(base.value)}
        self._classes.append(bool(named & set(self.bases)))
        self._functions.append(None)

    def leave_ClassDef(self, original_node: cst.ClassDef, updated_node: cst.ClassDef) -> Any:  # noqa: ARG002
        """Goes on with the class around it."""
        self._classes.pop()
        self._functions.pop()
        return updated_node

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        """Notes which method of an environment it is, unless it is today's already."""
        method = bool(self._classes and self._classes[-1] and self._functions[-1] is None)
        name = str(node.name.value)
        wanted = method and name in ("reset", "step") and not _takes_seed(node)
        self._functions.append(name if wanted else "")

    def leave_FunctionDef(
        self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef
    ) -> cst.FunctionDef:
        """Gives `reset` its keywords."""
        if self._functions.pop() != "reset":
            return updated_node
        self.changed(original_node, "reset takes seed and options, and returns infos, too")
        added = cst.ensure_type(cst.parse_statement(_KEYWORDS), cst.FunctionDef).params
        params = updated_node.params
        if params.kwonly_params or not isinstance(params.star_arg, cst.MaybeSentinel):
            new = params.with_changes(kwonly_params=[*params.kwonly_params, *added.kwonly_params])
        else:
            new = params.with_changes(star_arg=cst.ParamStar(), kwonly_params=added.kwonly_params)
        return updated_node.with_changes(params=new, returns=None)

    def visit_Lambda(self, node: cst.Lambda) -> None:  # noqa: ARG002
        """Keeps what a lambda holds apart."""
        self._functions.append("")

    def leave_Lambda(self, original_node: cst.Lambda, updated_node: cst.Lambda) -> cst.Lambda:  # noqa: ARG002
        """Goes on with the function around it."""
        self._functions.pop()
        return updated_node

    def leave_Return(self, original_node: cst.Return, updated_node: cst.Return) -> cst.Return:
        """Completes what `reset` and `step` return."""
        method = self._functions[-1] if self._functions else None
        value = updated_node.value
        if method == "reset" and value is not None:
            return updated_node.with_changes(value=_tuple(value, cst.Dict([])))
        if method == "step" and value is not None:
            if isinstance(value, cst.Tuple) and len(value.elements) == 4:
                self.changed(original_node, "step returns terminated and truncated, not done")
                return updated_node.with_changes(value=self.split(value))
            if not isinstance(value, cst.Tuple):
                self.todo(
                    original_node,
                    "step has to return obs, reward, terminated, truncated, info; see whether "
                    "this does",
                )
        return updated_node

    def split(self, value: cst.Tuple) -> cst.Tuple:
        """Four values as five."""
        raise NotImplementedError

    def inserted(self, value: cst.Tuple, element: cst.BaseExpression) -> cst.Tuple:
        """Four values with a fourth before the last."""
        *first, last = value.elements
        comma = first[-1].comma  # as the others are set
        return value.with_changes(elements=[*first, cst.Element(element, comma=comma), last])


def _takes_seed(node: cst.FunctionDef) -> bool:
    params = [*node.params.params, *node.params.kwonly_params]
    return any(param.name.value == "seed" for param in params)


def _tuple(*values: cst.BaseExpression) -> cst.Tuple:
    """Values as a tuple without parentheses of its own; a tuple inside gets its own."""
    shown = []
    for value in values:
        if isinstance(value, cst.Tuple) and not value.lpar:
            value = value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
        shown.append(cst.Element(value))
    return cst.Tuple(shown, lpar=[], rpar=[])
