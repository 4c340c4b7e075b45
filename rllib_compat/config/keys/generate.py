"""Reads the keys that a Ray release knew, and their defaults, out of its wheel.

The sources are parsed; nothing of the release is imported or run, so that any Python reads any
Ray. Up to Ray 1.12 configs are dicts (`COMMON_CONFIG`, `DEFAULT_CONFIG`); since then they are what
the config classes' constructors set. What is no literal is kept as `{"$": "expression"}`, and so
the few defaults that constructors set through methods or enumerations are not found.

It compares a release with the table, section by section ("common", "model", each algorithm)::

    pip download --no-deps --only-binary :all: --python-version 37 -d wheels ray==0.8.5
    python -m rllib_compat.config.keys.generate wheels/ray-0.8.5-*.whl
"""

from __future__ import annotations

import ast
import json
import sys
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from packaging.utils import parse_wheel_filename

from rllib_compat import registry
from rllib_compat.config import keys

Found: TypeAlias = "tuple[str, ast.AST | None]"

#: What is no literal.
EXPRESSION: dict[str, Any] = {"$": "expression"}
#: Ray's mark of a key that has been renamed (`DEPRECATED_VALUE`, -1).
PLACEHOLDER: dict[str, Any] = {"$": "placeholder"}
#: A dict whose keys stand in the table by themselves.
SECTION: dict[str, Any] = {"$": "section"}

#: What are sections among the common keys; an algorithm's own dicts all are.
_SECTIONS = ("model", "multiagent", "tf_session_args", "local_tf_session_args")
_MERGING = ("with_base_config", "merge_dicts", "merge_trainer_configs", "merge_algorithm_configs")
_COMMON = ("ray.rllib.agents.trainer", "ray.rllib.agents.agent")
_CLASSES = ("ray.rllib.algorithms.algorithm_config", "AlgorithmConfig")


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
        model = _as_dict(self.value("ray.rllib.models.catalog", "MODEL_DEFAULTS"))
        found = {"common": _flat(common), "model": model}
        for row in registry.ALGORITHMS.values():
            config = self._config_of(row)
            if config is not None:
                own = {k: v for k, v in config.items() if k not in common or common[k] != v}
                if _as_dict(own.get("model")):
                    own["model"] = {k: v for k, v in own["model"].items() if model.get(k, ...) != v}
                found[row.name] = _flat(own, nested=True)
        return found

    def _common(self) -> dict[str, Any]:
        for module in _COMMON:
            if self._file(module) and "COMMON_CONFIG" in self.names(module):
                return _as_dict(self.value(module, "COMMON_CONFIG"))
        return self.attributes(*_CLASSES)

    def _config_of(self, row: registry.Algorithm) -> dict[str, Any] | None:
        """What an algorithm starts from: its config class's attributes, or its dict."""
        for stem in dict.fromkeys((*row.stems, row.name)):
            for module in self._modules_of(row):
                names = self.names(module)
                if isinstance(names.get(f"{stem}Config"), ast.ClassDef):
                    return self.attributes(module, f"{stem}Config")
        for module in self._modules_of(row):
            for name in (f"{row.name}_DEFAULT_CONFIG", f"{row.name}_CONFIG", "DEFAULT_CONFIG"):
                if name in self.names(module):
                    return _as_dict(self.value(module, name)) or None
        return None

    def _modules_of(self, row: registry.Algorithm) -> Iterator[str]:
        """The modules that may hold an algorithm's own config, the most special first."""
        for place in sorted(row.modules, key=len, reverse=True):
            if place.partition(".")[2]:
                yield f"ray.rllib.agents.{place}"
            elif len(row.modules) == 1:
                yield f"ray.rllib.agents.{place}.{'apex' if row.derives else place}"
        for name in dict.fromkeys((row.name.lower(), *(stem.lower() for stem in row.stems))):
            yield f"ray.rllib.algorithms.{name}.{name}"

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

    def attributes(self, module: str, name: str) -> dict[str, Any]:
        """What the constructors of a config class and of its bases set."""
        home, node = self.find(module, name)
        if not isinstance(node, ast.ClassDef):
            return {}
        found: dict[str, Any] = {}
        for base in node.bases:
            if isinstance(base, ast.Name):
                found |= self.attributes(home, base.id)
        made = [f for f in node.body if isinstance(f, ast.FunctionDef) and f.name == "__init__"]
        for statement in made[0].body if made else ():
            found |= self._set_by(home, statement, found)
        return found

    def _set_by(self, module: str, node: ast.stmt, so_far: Mapping[str, Any]) -> dict[str, Any]:
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            value = None if node.value is None else self.evaluated(module, node.value)
            if isinstance(target, ast.Attribute):
                return {target.attr: value}
            if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Attribute):
                name, key = target.value.attr, self.evaluated(module, target.slice)
                return {name: {**_as_dict(so_far.get(name)), key: value}}
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            call = node.value.func
            of = call.value if isinstance(call, ast.Attribute) and call.attr == "update" else None
            if isinstance(of, ast.Attribute):
                more = self.evaluated(module, node.value.args[0])
                return {of.attr: {**_as_dict(so_far.get(of.attr)), **_as_dict(more)}}
        return {}

    def evaluated(self, module: str, node: ast.expr) -> Any:
        """The value of an expression, as far as it is made of literals and names."""
        if isinstance(node, ast.Name):
            return self.value(module, node.id)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            home, inner = self.find(module, node.value.id)
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
            return eval(ast.unparse(expression), {"__builtins__": {}})  # noqa: S307  # two numbers
        try:
            return ast.literal_eval(node)
        except ValueError:
            return EXPRESSION

    def _called(self, module: str, node: ast.Call) -> Any:
        function = node.func
        name = getattr(function, "attr", getattr(function, "id", ""))
        if name == "_deprecated_default_config":  # a dict that warns; it is made of the class
            _, cls = self.find(module, name)
            inner = (n for n in ast.walk(cls) if isinstance(n, ast.Call)) if cls else iter(())
            calls = [call for call in inner if getattr(call.func, "attr", "") == "to_dict"]
            return self._called(module, calls[0]) if calls else EXPRESSION
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
        if name in ("int", "float") and parts and isinstance(parts[0], (int, float)):
            return int(parts[0]) if name == "int" else float(parts[0])
        if name == "dict":
            named = {word.arg: self.evaluated(module, word.value) for word in node.keywords}
            more = _as_dict(named.pop(None, {}))
            return {**(_as_dict(parts[0]) if parts else {}), **named, **more}
        return EXPRESSION


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
        apart = bool(_as_dict(value)) and (key in _SECTIONS or nested) and key != "env_config"
        flat[key] = SECTION if apart else value
        for inner, default in _as_dict(value).items() if nested and apart else ():
            flat[f"{key}.{inner}"] = default
    return flat


def in_table(section: str, release: str) -> dict[str, Any]:
    """The keys of a section at a release, as the table has them."""
    order = keys.versions().index
    return {
        key: run[2]
        for key, runs in keys.section(section).items()
        for run in runs
        if len(run) == 3 and order(run[0]) <= order(release) <= order(run[1])
    }


def differences(release: Release) -> tuple[int, list[str]]:
    """How many keys were compared, and where the table and the sources say different things."""
    compared, found = 0, []
    for name, section in release.sections().items():
        table = in_table(name, release.version)
        for key in sorted({*table, *section}, key=str):
            compared += 1
            ours, theirs = table.get(key, "absent"), section.get(key, "absent")
            if json.dumps(ours, default=str) != json.dumps(theirs, default=str):
                found.append(f"{name}.{key}: {ours!r} in the table, {theirs!r} in the sources")
    return compared, found


def main() -> None:
    """Compares the wheels that are given with the table; `--print` gives their keys as JSON."""
    for wheel in (Path(name) for name in sys.argv[1:] if name != "--print"):
        release = Release(wheel)
        if "--print" in sys.argv:
            print(json.dumps({release.version: release.sections()}, indent=1))
            continue
        compared, found = differences(release)
        print(f"Ray {release.version}: {compared} keys, {len(found)} differences")
        for line in found:
            print(f"  {line}")


if __name__ == "__main__":
    main()
