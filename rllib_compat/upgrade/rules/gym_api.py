"""gym's API as gymnasium has it: `reset` returns infos, too, and `step` five values."""

from __future__ import annotations

from typing import Any

import libcst as cst

from rllib_compat.upgrade.rule import Target, dotted, text_of
from rllib_compat.upgrade.rules._env_classes import EnvClasses

_WRAPPERS = ("Wrapper", "ObservationWrapper", "RewardWrapper", "ActionWrapper")
_NAMES = ("Env", "core.Env", *_WRAPPERS, *(f"core.{name}" for name in _WRAPPERS))
_DONE = "done = terminated or truncated"


class GymApi(EnvClasses):
    """Rewrites environments, and the code that makes one with `gym.make` and steps it."""

    id = "gym-api"
    bases = tuple(f"{package}.{name}" for package in ("gym", "gymnasium") for name in _NAMES)

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self._made: set[str] = set()

    def split(self, value: cst.Tuple) -> cst.Tuple:
        """Returns five values for four; old environments have no truncations."""
        return self.inserted(value, cst.Name("False"))

    def visit_Assign(self, node: cst.Assign) -> None:
        """Notes the names of environments that are made."""
        if isinstance(node.value, cst.Call) and self.names(node.value.func) & {
            "gym.make",
            "gymnasium.make",
        }:
            self._made.update(name for t in node.targets if (name := dotted(t.target)))

    def visit_Call(self, node: cst.Call) -> None:
        """Tells of methods that environments have no more."""
        owner, method = _called(node)
        if owner in self._made and method == "seed":
            self.todo(node, f"environments have no seed(); give it to {owner}.reset(seed=)")
        if owner in self._made and method == "render" and node.args:
            self.todo(node, "render() takes no mode; give gym.make(render_mode=)")

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> Any:
        """Rewrites `obs = env.reset()` and `obs, reward, done, info = env.step(action)`."""
        assign = updated_node.body[0]
        if len(updated_node.body) != 1 or not isinstance(assign, cst.Assign):
            return updated_node
        call = assign.value
        if isinstance(call, cst.Tuple):
            elements = [self._observed(element) for element in call.elements]
            if any(new is not old for new, old in zip(elements, call.elements, strict=True)):
                self.changed(original_node, "reset returns infos, too")
                value = call.with_changes(elements=elements)
                return updated_node.with_changes(body=[assign.with_changes(value=value)])
        if len(assign.targets) != 1 or not isinstance(call, cst.Call):
            return updated_node
        owner, method = _called(call)
        target = assign.targets[0].target
        values = len(target.elements) if isinstance(target, cst.Tuple) else 1
        if method == "step" and values == 4 and owner not in self._made:
            self.todo(original_node, f"gymnasium's step returns five values; does {owner}'s?")
        if owner not in self._made:
            return updated_node
        if method == "reset" and values == 1:
            self.changed(original_node, "reset returns infos, too")
            new = _targets(assign, f"{text_of(target)}, _")
            return updated_node.with_changes(body=[new])
        if method == "step" and values == 4:
            self.changed(original_node, "step returns five values")
            obs, reward, done, info = (text_of(e.value) for e in target.elements)
            new = _targets(assign, f"{obs}, {reward}, terminated, truncated, {info}")
            also = cst.parse_statement(_DONE.replace("done", done, 1))
            return cst.FlattenSentinel([updated_node.with_changes(body=[new]), also])
        return updated_node

    def _observed(self, element: Any) -> Any:
        """An element of a tuple: of `env.reset()`, the observation alone."""
        owner, method = _called(element.value)
        if owner not in self._made or method != "reset":
            return element
        return element.with_changes(value=cst.parse_expression(f"{text_of(element.value)}[0]"))


def _called(value: object) -> tuple[str, str]:
    """What a method is called on, and the method; both are empty if `value` is no call."""
    name = dotted(value.func) if isinstance(value, cst.Call) else None
    owner, _, method = (name or "").rpartition(".")
    return owner, method


def _targets(assign: cst.Assign, text: str) -> cst.Assign:
    line = cst.ensure_type(cst.parse_statement(f"{text} = 0"), cst.SimpleStatementLine)
    return assign.with_changes(targets=cst.ensure_type(line.body[0], cst.Assign).targets)
