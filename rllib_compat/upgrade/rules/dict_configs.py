"""Algorithms of Ray 2.0 – 2.2 that are made of dicts: today's class of the same name takes none."""

from __future__ import annotations

import libcst as cst

from rllib_compat import registry
from rllib_compat.upgrade.rule import Rule, Target

_ALGORITHMS = "ray.rllib.algorithms."


class DictConfigs(Rule):
    """Brings the classes back that such code means; Tune's names are another rule's."""

    id = "dict-configs"
    targets = (Target.COMPAT,)

    def visit_Module(self, node: cst.Module) -> None:
        """Looks whether the file makes configs of today."""
        self._of_today = any(f"{name}Config" in node.code for name in registry.ALGORITHMS)

    def visit_Attribute(self, node: cst.Attribute) -> None:
        """Looks for defaults as a dict."""
        for name in self.names(node):
            if name.startswith(_ALGORITHMS) and name.endswith(".DEFAULT_CONFIG"):
                self._bring_back(node, name)

    def visit_Name(self, node: cst.Name) -> None:
        """The same, where the name was imported."""
        if node.value.endswith("DEFAULT_CONFIG"):
            for name in self.names(node):
                if name.startswith(_ALGORITHMS):
                    self._bring_back(node, name)

    def visit_Call(self, node: cst.Call) -> None:
        """Looks for algorithms that are made."""
        if node.args:
            self._look(node, node.func)

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        """Looks for subclasses."""
        for base in node.bases:
            self._look(node, base.value)

    def _look(self, node: cst.CSTNode, used: cst.BaseExpression) -> None:
        if self._of_today:
            return
        for name in self.names(used):
            if name.startswith(_ALGORITHMS) and name.rpartition(".")[2] in registry.ALGORITHMS:
                self._bring_back(node, name)

    def _bring_back(self, node: cst.CSTNode, name: str) -> None:
        self.bring_back(node, f"{name} takes dicts, brought back")
