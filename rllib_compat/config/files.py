"""Reads legacy configs from the files that people keep them in."""

from __future__ import annotations

import ast
import runpy
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from rllib_compat.config.evidence import Evidence, find_evidence, of_code
from rllib_compat.formats import files, pickles
from rllib_compat.formats.paths import local_path
from rllib_compat.neutral.budget import Budget
from rllib_compat.neutral.check import check_values
from rllib_compat.neutral.errors import CompatError, ConfigError
from rllib_compat.neutral.frozen import frozen

# What an experiment of Tune has beside its config.
EXPERIMENT_KEYS = ("run", "config")


@frozen
class Experiment:
    """One config of a file.

    Attributes:
        name: Its name in the file, or the file's.
        config: The config.
        algorithm: The algorithm, where the file names it.
        env: The environment, where the file names it outside the config.
        stop: Tune's stop criteria.
    """

    name: str
    config: Mapping[str, Any]
    algorithm: str | None = None
    env: Any = None
    stop: Mapping[str, Any] = field(default_factory=dict)


def read_experiments(source: str) -> list[Experiment]:
    """Reads all configs of a file.

    Args:
        source: A path that ends in `.json`, `.yaml`, `.yml` or `.pkl`, or `file.py:NAME`. A Python
            file is read as text where NAME is written out; else it is run, as an import would.

    Raises:
        ConfigError: There is no such file, or it holds no config.
    """
    path, _, name = source.rpartition(":")
    if path.endswith(".py"):
        return _experiments(name, _python_dict(local_path(path), name))
    return _experiments(Path(source).stem, read_data(source))


def read_data(source: str) -> Any:
    """Reads JSON, YAML or a pickle of plain data, without running anything that is in it.

    Raises:
        ConfigError: There is no such file, or it is damaged or of another kind.
    """
    file = local_path(source)
    reader = _READERS.get(file.suffix.lower())
    if reader is None:
        raise ConfigError(
            f"{source} has no known suffix of config files.",
            fix=f"pass a file with one of {', '.join(_READERS)}, or file.py:NAME",
        )
    budget = Budget()
    try:
        value = reader(file, budget)
        # A value that contains itself, or expands to millions of values, is no config.
        check_values(value, budget, source)
    except CompatError as error:
        raise ConfigError(
            f"{source} can't be read: {error.found}", where=error.where, fix=error.fix or _ANOTHER
        ) from error
    return value


def _read_json(path: Path, budget: Budget) -> Any:
    return files.read_json(path, budget, str(path))


def _read_yaml(path: Path, budget: Budget) -> Any:
    return files.read_yaml(path, budget, str(path))


def _read_pickle(path: Path, budget: Budget) -> Any:
    return pickles.load(path, budget=budget).value


_ANOTHER = "Correct the file, or pass another one."
_READERS = {".json": _read_json, ".yaml": _read_yaml, ".yml": _read_yaml, ".pkl": _read_pickle}


def read_evidence(source: str) -> tuple[Evidence, ...]:
    """What shows which Ray the file of `read_experiments` was written for.

    Its imports and calls, if it is Python, and what its project asks for.
    """
    path, is_python, _ = source.partition(".py:")
    beside = find_evidence(local_path(path).parent)
    return (*of_code(_program(local_path(f"{path}.py"))), *beside) if is_python else beside


def _program(path: Path) -> ast.Module:
    try:
        with files.open_regular(path) as file:
            return ast.parse(file.read(), str(path))
    # Text that is none, null bytes, and what is nested too deeply for Python.
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ConfigError(f"{path} can't be read: {error}", fix=_ANOTHER) from error


def _python_dict(path: Path, name: str) -> Any:
    for node in _program(path).body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            try:
                return ast.literal_eval(node.value)  # type: ignore[attr-defined]
            except (ValueError, TypeError, RecursionError, MemoryError):
                break  # it is computed
    try:
        values = runpy.run_path(str(path), run_name=path.stem)
    except (Exception, SystemExit) as error:  # whatever the file does when it is run
        raise ConfigError(
            f"{path} can't be run, as {name} is computed in it: {type(error).__name__}: {error}",
            fix=f"Correct the error, or assign constants to {name}: these are read without running "
            "the file.",
        ) from error
    if name not in values:
        known = [n for n, v in values.items() if n[:1] != "_" and isinstance(v, Mapping)]
        named = " or ".join(f"{path}:{n}" for n in known) or "the name of a dict"
        raise ConfigError(f"{path} defines no {name!r}.", fix=f"Pass {named}.")
    return values[name]


def _experiments(name: str, value: object) -> list[Experiment]:
    if not isinstance(value, Mapping):
        raise ConfigError(
            f"{name} holds a {type(value).__name__}, not a config.",
            fix="Pass a dict of settings, or a dict of experiments.",
        )
    if _is_experiment(value):
        return [_experiment(name, value)]
    if value and all(_is_experiment(inner) for inner in value.values()):
        return [_experiment(inner_name, inner) for inner_name, inner in value.items()]
    return [Experiment(name, value)]


def _is_experiment(value: object) -> bool:
    return isinstance(value, Mapping) and any(
        isinstance(value.get(key), kind)
        for key, kind in zip(EXPERIMENT_KEYS, (str, Mapping), strict=True)
    )


def _experiment(name: str, value: Mapping[str, Any]) -> Experiment:
    return Experiment(
        str(value.get("experiment", name)),
        value.get("config") or {},
        value.get("run"),
        value.get("env"),
        value.get("stop") or {},
    )
