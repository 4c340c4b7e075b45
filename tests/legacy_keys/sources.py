"""Reads the keys that a Ray release knew, and their defaults, out of its wheel.

The sources are parsed; nothing of the release is imported or run, so that any Python reads any
Ray. Up to Ray 1.12 configs are dicts (`COMMON_CONFIG`, `DEFAULT_CONFIG`); since then they are what
the config classes' constructors set. What is no literal is kept as `{"$": "expression"}`.
"""

from __future__ import annotations

import ast
import re
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from packaging.utils import parse_wheel_filename

from rllib_compat import registry

#: `ApexDQN` lives in `apex_dqn`, `SlateQ` in `slateq`.
_BETWEEN_WORDS = re.compile(r"(?<=[a-z])(?=[A-Z])")

Found: TypeAlias = "tuple[str, ast.AST | None]"

#: What is no literal.
EXPRESSION: dict[str, Any] = {"$": "expression"}
#: Ray's mark of a key that has been renamed (`DEPRECATED_VALUE`, -1).
PLACEHOLDER: dict[str, Any] = {"$": "placeholder"}
#: A dict whose keys stand in the table by themselves.
SECTION: dict[str, Any] = {"$": "section"}

#: What are sections among the common keys; an algorithm's own dicts all are.
_SECTIONS = ("model", "multiagent", "tf_session_args", "local_tf_session_args")
#: Their keys are the users' own names.
_WHOLE = ("env_config", "off_policy_estimation_methods")
_MERGING = ("with_base_config", "merge_dicts", "merge_trainer_configs", "merge_algorithm_configs")
_COMMON = ("ray.rllib.agents.trainer", "ray.rllib.agents.agent")
_CLASSES = ("ray.rllib.algorithms.algorithm_config", "AlgorithmConfig")


#: Attributes of a config object that the trainer itself did not begin with: it had its dict.
_OF_OBJECTS_ALONE = {("1.13.0", "PG"): ("evaluation_interval", "train_batch_size")}


class Release:
    """The sources of one release.

    Args:
        wheel: The wheel's file.
    """

    def __init__(self, wheel: Path) -> None:
        self.version = str(parse_wheel_filename(wheel.name)[1])
        self._zip = zipfile.ZipFile(wheel)
        self._files = {
            name[name.index("ray/rllib/") :]: name
            for name in self._zip.namelist()
            if "ray/rllib/" in name and name.endswith(".py")
        }
        self._names: dict[str, dict[str, Any]] = {}

    def sections(self) -> dict[str, dict[str, Any]]:
        """Section → key → default, as the table has them."""
        common = self._common()
        model = self._model()
        found = {"common": _flat(common), "model": model}
        for row in registry.ALGORITHMS.values():
            config = self._config_of(row)
            if config is not None:
                config = {f"{k}_" if f"{k}_" in common else k: v for k, v in config.items()}
                others = _OF_OBJECTS_ALONE.get((self.version, row.name), ())
                own = {
                    k: v
                    for k, v in config.items()
                    if k not in others and (k not in common or common[k] != v)
                }
                if _as_dict(own.get("model")):
                    own["model"] = {k: v for k, v in own["model"].items() if model.get(k, ...) != v}
                found[row.name] = _flat(own, nested=True)
        return found

    def _common(self) -> dict[str, Any]:
        if self._file(_CLASSES[0]):
            return self.attributes(*_CLASSES)
        for module in _COMMON:
            if self._file(module) and "COMMON_CONFIG" in self.names(module):
                return _as_dict(self.value(module, "COMMON_CONFIG"))
        return {}

    def _model(self) -> dict[str, Any]:
        catalog = "ray.rllib.models.catalog"
        names = self.value(catalog, "MODEL_CONFIGS")  # Ray 0.5: names without defaults
        defaults = self.value(catalog, "MODEL_DEFAULTS")
        return dict.fromkeys(names, EXPRESSION) if isinstance(names, list) else _as_dict(defaults)

    def _config_of(self, row: registry.Algorithm) -> dict[str, Any] | None:
        """What an algorithm starts from: its config class's attributes, or its dict."""
        for stem in dict.fromkeys((*row.stems, row.name)):
            for module in self._modules_of(row):
                names = self.names(module)
                if isinstance(names.get(f"{stem}Config"), ast.ClassDef):
                    return self.attributes(module, f"{stem}Config")
        for module in self._modules_of(row):
            if not self._has_class(module, row):
                continue
            for name in (f"{row.name}_DEFAULT_CONFIG", f"{row.name}_CONFIG", "DEFAULT_CONFIG"):
                if name in self.names(module):
                    return _as_dict(self.value(module, name)) or None
        return None

    def _has_class(self, module: str, row: registry.Algorithm) -> bool:
        """Whether a module that several algorithms share has this one already."""
        shared = len(registry.modules().get(module.removeprefix("ray.rllib.agents."), ())) > 1
        classes = {f"{stem}{suffix}" for stem in row.stems for suffix in registry.SUFFIXES}
        return not shared or not classes.isdisjoint(self.names(module))

    def _modules_of(self, row: registry.Algorithm) -> Iterator[str]:
        """The modules that may hold an algorithm's own config, the most special first."""
        for place in sorted(row.modules, key=len, reverse=True):
            if place.partition(".")[2]:
                yield f"ray.rllib.agents.{place}"
                yield f"ray.rllib.algorithms.{place}"
            elif len(row.modules) == 1:
                yield f"ray.rllib.agents.{place}.{'apex' if row.derives else place}"
        for name in dict.fromkeys((row.name, *row.stems)):
            for folder in dict.fromkeys((name.lower(), _BETWEEN_WORDS.sub("_", name).lower())):
                for room in ("algorithms", "agents", "contrib"):
                    yield f"ray.rllib.{room}.{folder}.{folder}"

    def _file(self, module: str) -> str | None:
        base = module.replace(".", "/")
        return next((f for f in (f"{base}.py", f"{base}/__init__.py") if f in self._files), None)

    def names(self, module: str) -> dict[str, Any]:
        """The names of a module: expressions, classes, and `(module, name)` of imports."""
        if module in self._names:
            return self._names[module]
        file = self._file(module)
        found: dict[str, Any] = {}
        todo = ast.parse(self._zip.read(self._files[file])).body if file else []
        while todo:
            node, *todo = todo
            if isinstance(node, (ast.Try, ast.If)):
                todo = [*node.body, *todo]
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                found[node.targets[0].id] = node.value
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                found[node.target.id] = node.value
            elif isinstance(node, ast.ClassDef):
                found[node.name] = node
            elif isinstance(node, ast.ImportFrom):
                found |= {a.asname or a.name: (node.module or "", a.name) for a in node.names}
            elif isinstance(node, ast.Import):
                found |= {a.asname or a.name: (a.name, "") for a in node.names}
        self._names[module] = found
        return found

    def find(self, module: str, name: str) -> Found:
        """Follows the imports of a name: its module, and what it is there."""
        node = self.names(module).get(name)
        while isinstance(node, tuple):
            module, name = node
            if self._file(f"{module}.{name}"):
                return f"{module}.{name}", None
            node = self.names(module).get(name)
        return module, node

    def value(self, module: str, name: str) -> Any:
        """The value of a module's name."""
        if name == "DEPRECATED_VALUE":
            return PLACEHOLDER
        home, node = self.find(module, name)
        return self.evaluated(home, node) if isinstance(node, ast.expr) else EXPRESSION

    def attributes(
        self, module: str, name: str, so_far: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """What the constructor of a config class sets, in its order, with those of its bases.

        Args:
            module: Where the class is.
            name: The class.
            so_far: What the constructor of a derived class has set before it calls this one.
        """
        found = dict(so_far or {})
        home, node = self.find(module, name)
        if not isinstance(node, ast.ClassDef):
            return found
        bases = [self._place(home, base) for base in node.bases]
        made = [f for f in node.body if isinstance(f, ast.FunctionDef) and f.name == "__init__"]
        if not made:
            for base in bases:
                found = self.attributes(*base, found)
            return found
        arguments, defaults = made[0].args.args, made[0].args.defaults
        given = {
            argument.arg: self.evaluated(home, default)
            for argument, default in zip(arguments[-len(defaults) :], defaults, strict=False)
        }
        for statement in made[0].body:
            if _is_call_of_super(statement):
                for base in bases:
                    found = self.attributes(*base, found)
            else:
                found |= self._set_by(home, statement, found, given)
        return found

    def _place(self, module: str, node: ast.expr) -> tuple[str, str]:
        """Where `Name` or `module.Name` is."""
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            return self.find(module, node.value.id)[0], node.attr
        return module, ast.unparse(node)

    def _set_by(
        self, module: str, node: ast.stmt, so_far: Mapping[str, Any], given: Mapping[str, Any]
    ) -> dict[str, Any]:
        """What a statement of a constructor sets."""
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            value = None if node.value is None else self.evaluated(module, node.value)
            if isinstance(node.value, ast.Name) and node.value.id in given:
                value = given[node.value.id]
            if isinstance(target, ast.Attribute):
                return {target.attr: value}
            if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Attribute):
                name, key = target.value.attr, self.evaluated(module, target.slice)
                return {name: {**_as_dict(so_far.get(name)), key: value}}
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            return self._set_by_call(module, node.value, so_far)
        inner: list[ast.stmt] = []
        if isinstance(node, ast.Try):
            inner = node.body
        elif isinstance(node, ast.If):  # `if not hasattr(self, "…"):`
            asked = [n.value for n in ast.walk(node.test) if isinstance(n, ast.Constant)]
            inner = [] if any(name in so_far for name in asked) else node.body
        found: dict[str, Any] = {}
        for statement in inner:
            found |= self._set_by(module, statement, so_far, given)
        return found

    def _set_by_call(
        self, module: str, call: ast.Call, so_far: Mapping[str, Any]
    ) -> dict[str, Any]:
        """What `self.<attribute>.update({…})` or `self.<method>(key=…)` sets."""
        if not isinstance(call.func, ast.Attribute):
            return {}
        of = call.func.value
        if isinstance(of, ast.Attribute) and call.func.attr == "update":
            more = self.evaluated(module, call.args[0])
            return {of.attr: {**_as_dict(so_far.get(of.attr)), **_as_dict(more)}}
        if not isinstance(of, ast.Name):
            return {}
        found = {k.arg: self.evaluated(module, k.value) for k in call.keywords if k.arg}
        if call.func.attr == "callbacks" and call.args:
            found["callbacks_class"] = self.evaluated(module, call.args[0])
        if found.get("enable_rl_module_and_learner") is True:  # the new stack puts it aside
            found["exploration_config"] = {}
        return found

    def evaluated(self, module: str, node: ast.expr) -> Any:
        """The value of an expression, as far as it is made of literals and names."""
        if isinstance(node, ast.Name):
            return self.value(module, node.id)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            home, inner = self.find(module, node.value.id)
            if isinstance(inner, ast.ClassDef):
                return self._of_class(home, inner, node.attr)
            return self.value(home, node.attr) if inner is None and self._file(home) else EXPRESSION
        if isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            return {self.evaluated(module, k): self.evaluated(module, v) for k, v in pairs if k}
        if isinstance(node, (ast.List, ast.Tuple)):
            return [self.evaluated(module, item) for item in node.elts]
        if isinstance(node, ast.Call):
            return self._called(module, node)
        if isinstance(node, ast.BinOp):
            sides = [self.evaluated(module, side) for side in (node.left, node.right)]
            if not all(isinstance(side, (int, float)) for side in sides):
                return EXPRESSION
            expression = ast.BinOp(ast.Constant(sides[0]), node.op, ast.Constant(sides[1]))
            return eval(ast.unparse(expression), {"__builtins__": {}})  # two numbers
        try:
            return ast.literal_eval(node)
        except ValueError:
            return EXPRESSION

    def _of_class(self, module: str, node: ast.ClassDef, name: str) -> Any:
        """The constant of a class: an enumeration's value, the name of a column."""
        for item in node.body:
            if isinstance(item, ast.Assign) and getattr(item.targets[0], "id", "") == name:
                return self.evaluated(module, item.value)
        return EXPRESSION

    def _called(self, module: str, node: ast.Call) -> Any:
        function = node.func
        name = getattr(function, "attr", getattr(function, "id", ""))
        if (
            name == "_deprecated_default_config"
        ):  # a dict that warns; `super().__init__(…)` fills it
            _, cls = self.find(module, name)
            calls = [n for n in ast.walk(cls) if isinstance(n, ast.Call)] if cls else []
            filled = [call.args[0] for call in calls if _is_super(call) and call.args]
            return self.evaluated(module, filled[0]) if filled else EXPRESSION
        if name == "to_dict" and isinstance(function, ast.Attribute):
            made = function.value
            if isinstance(made, ast.Call) and isinstance(made.func, ast.Name):
                attributes = self.attributes(module, made.func.id)
                return {key.removesuffix("_"): value for key, value in attributes.items()}
        parts = [self.evaluated(module, argument) for argument in node.args]
        if name == "with_common_config" and parts:
            return _merged(self._common(), _as_dict(parts[0]))
        if name in _MERGING and len(parts) >= 2:
            typed = name != "merge_dicts"
            return _merged(_as_dict(parts[0]), _as_dict(parts[1]), typed=typed)
        if name in ("copy", "deepcopy") and parts:
            return parts[0]
        if name == "float" and parts == ["inf"]:
            return "inf"  # JSON has none
        if name in ("overrides", "dict") and not parts:
            return {k.arg: self.evaluated(module, k.value) for k in node.keywords if k.arg}
        if name in ("int", "float") and parts and isinstance(parts[0], (int, float)):
            return int(parts[0]) if name == "int" else float(parts[0])
        if name == "dict":
            named = {word.arg: self.evaluated(module, word.value) for word in node.keywords}
            more = _as_dict(named.pop(None, {}))
            return {**(_as_dict(parts[0]) if parts else {}), **named, **more}
        return EXPRESSION


def _is_super(call: ast.Call) -> bool:
    """Whether it is `super().__init__(…)`."""
    return ast.unparse(call.func) == "super().__init__"


def _is_call_of_super(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and _is_super(node.value)


def _as_dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) and "$" not in value else {}


def _merged(
    base: Mapping[str, Any], more: Mapping[str, Any], *, typed: bool = True
) -> dict[str, Any]:
    """As `deep_update`: dicts are merged, but (`typed`) for those that name another type."""
    merged = dict(base)
    for key, value in more.items():
        old, new = _as_dict(merged.get(key)), _as_dict(value)
        other_type = typed and "type" in new and new.get("type") != old.get("type")
        merged[key] = _merged(old, new, typed=typed) if old and new and not other_type else value
    return merged


def _flat(config: Mapping[str, Any], *, nested: bool = False) -> dict[str, Any]:
    """A config with dicts as sections; `nested`: their keys follow as `section.key`."""
    flat: dict[str, Any] = {}
    for key, value in config.items():
        apart = bool(_as_dict(value)) and (key in _SECTIONS or nested) and key not in _WHOLE
        flat[key] = SECTION if apart else value
        for inner, default in _as_dict(value).items() if nested and apart else ():
            flat[f"{key}.{inner}"] = default
    return flat
