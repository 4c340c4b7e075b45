"""Names that numpy has removed: `np.bool`, `np.product`, …."""

from __future__ import annotations

import libcst as cst

from rllib_compat.registry import old_names
from rllib_compat.upgrade.rule import Rule

_BUILTINS = (bool, complex, float, int, object, str)


class NumpyNames(Rule):
    """Writes today's names for those that numpy 1.24 - 2.0 removed."""

    id = "numpy-names"

    def leave_Attribute(
        self, original_node: cst.Attribute, updated_node: cst.Attribute
    ) -> cst.BaseExpression:
        """Rewrites `np.name`."""
        for known in self.names(original_node):
            module, _, name = known.rpartition(".")
            if module != "numpy" or name not in old_names.NUMPY:
                continue
            was = old_names.NUMPY[name]
            self.changed(original_node, f"numpy has no {name} any more")
            if was in _BUILTINS:
                return cst.Name(was.__name__)
            if isinstance(was, str):
                return updated_node.with_changes(attr=cst.Name(was))
            if name == "NZERO":
                return cst.parse_expression("-0.0")
            if name == "NINF":
                infinite = updated_node.with_changes(attr=cst.Name("inf"))
                return cst.UnaryOperation(cst.Minus(), infinite)
            return cst.parse_expression("0.0")
        return updated_node
