"""`PPOTrainer(config={…}, env=…)` as a chain of `PPOConfig()` calls, by the rules for configs."""

from __future__ import annotations

import ast
from typing import Any

import libcst as cst
from libcst import matchers as m

from rllib_compat import registry
from rllib_compat.config import translate
from rllib_compat.config.code import python_code
from rllib_compat.config.engine import leaves
from rllib_compat.config.era import resolve
from rllib_compat.config.rules.training import factor
from rllib_compat.neutral.errors import CompatError
from rllib_compat.neutral.report import Severity
from rllib_compat.upgrade.rule import Rule, Target, string_of, text_of

#: What a trainer was made with that a config says today.
_TAKEN = ("config", "env")
#: The conversions that hand on whatever they get.
_AS_IT_IS = (None, factor)


class AlgorithmConfig(Rule):
    """Rewrites trainers whose config is written out where they are made."""

    id = "algorithm-config"
    targets = (Target.NATIVE,)

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        """Rewrites one, or reports why it is left."""
        algorithm = self._algorithm(original_node)
        given = _arguments(original_node)
        if algorithm is None or "config" not in given or not isinstance(given["config"], cst.Dict):
            return updated_node  # `trainers` reports it
        try:
            program = self._program(algorithm, given["config"], given.get("env"))
        except (CompatError, _Left) as error:
            self.todo(original_node, f"the config is left: {str(error).splitlines()[0]}")
            return updated_node
        *imports, last = cst.parse_module(program.code).body
        for line in imports:
            self._need(line)
        for message in program.notes:
            self.todo(original_node, message)
        self.keep(m.findall(given["config"], m.Comment()))
        assign = cst.ensure_type(cst.ensure_type(last, cst.SimpleStatementLine).body[0], cst.Assign)
        self.changed(original_node, f"the config is a chain of {algorithm}Config() calls")
        return cst.Call(cst.Attribute(assign.value, cst.Name("build_algo")))

    def _algorithm(self, node: cst.Call) -> str | None:
        for name in self.names(node.func):
            module, _, last = name.rpartition(".")
            if module.startswith("ray.rllib.algorithms.") and last in registry.ALGORITHMS:
                return last if registry.of(last).becomes == last else None
        return None

    def _program(
        self, algorithm: str, config: cst.Dict, env: cst.BaseExpression | None
    ) -> _Program:
        literal, computed = _values(config)
        own_env = computed.pop("env", None)
        if "env" in literal:
            own_env = repr(literal.pop("env"))
        env_source = text_of(env) if env is not None else own_env
        era = resolve(self.legacy_ray, {**literal, **computed}, algorithm, self.evidence)
        translation = translate(literal, algorithm=algorithm, legacy_ray=era)
        if translation.refused or translation.api_stack == "old":
            raise _Left("a part of it has no meaning on the new API stack")
        calls: dict[str, dict[str, Any]] = {
            method: dict(arguments) for method, arguments in translation.calls.items()
        }
        for key, source in computed.items():
            (leaf,) = leaves({key: None}, (algorithm,))
            rule = leaf.rule
            if (
                rule is None
                or rule.section
                or rule.convert not in _AS_IT_IS
                or rule.target.count(".") != 1
            ):
                raise _Left(f"{key} is computed, and what becomes of it depends on its value")
            method, argument = rule.target.split(".")
            calls.setdefault(method, {})[argument] = _expression(source)
        if env_source is not None:
            calls.setdefault("environment", {})["env"] = _expression(env_source)
        code = python_code(algorithm, calls)
        if "rllib_compat" in code:
            raise _Left("a part of it needs adapters of this package")
        warnings = translation.report.at_least(Severity.WARNING)
        return _Program(code, [f"{f.path.removeprefix('$.')}: {f.message}" for f in warnings])

    def _need(self, line: Any) -> None:
        (part,) = line.body
        if isinstance(part, cst.ImportFrom) and not isinstance(part.names, cst.ImportStar):
            for alias in part.names:
                assert part.module is not None
                self.imports[f"{text_of(part.module)}:{alias.evaluated_name}"] = None
        else:
            for alias in cst.ensure_type(part, cst.Import).names:
                self.imports[f"{alias.evaluated_name}:"] = None


class _Left(Exception):  # noqa: N818 - nothing is wrong; it is only not rewritten
    """Why a config is left as it is."""


class _Program:
    """A program that makes a config, and what a person has to look at."""

    def __init__(self, code: str, notes: list[str]) -> None:
        self.code = code
        self.notes = notes


def _arguments(node: cst.Call) -> dict[str, cst.BaseExpression]:
    """The arguments by name; none if there are others than those of `_TAKEN`."""
    found = {}
    for place, arg in enumerate(node.args):
        name = arg.keyword.value if arg.keyword else ("config", "env", "")[min(place, 2)]
        if arg.star or name not in _TAKEN:
            return {}
        found[str(name)] = arg.value
    return found


def _expression(source: str) -> ast.expr:
    return ast.parse(source.strip(), mode="eval").body


def _values(config: cst.Dict) -> tuple[dict[str, Any], dict[str, str]]:
    """The values that are written out, and the source of those that are computed."""
    literal: dict[str, Any] = {}
    computed: dict[str, str] = {}
    for element in config.elements:
        key = string_of(element.key) if isinstance(element, cst.DictElement) else None
        if key is None:
            raise _Left("not all of its keys are written out")
        source = text_of(element.value)
        try:
            literal[key] = ast.literal_eval(source)
        except (ValueError, SyntaxError):
            computed[key] = source
    return literal, computed
