"""SECURITY.md has a row for each verb, and for each public function that takes a path."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path

import pytest

import rllib_compat
from tests.fuzz.doors import DOORS

TEXT = (Path(__file__).parents[2] / "SECURITY.md").read_text("utf-8")
TABLES = TEXT.partition("## What each verb and function promises")[2].partition("\n## ")[0]

#: What arguments for paths are called where their types do not say it.
PATHS = {"path", "old_ray", "checkpoint", "source", "old", "logdir"}
PATHS |= {"checkpoint_path", "checkpoint_dir", "export_dir"}

#: Records, modules and hooks, which get paths from this package.
OF_OURS = r"Conversion|Inspection|modules\.|\.Manifest|CallbackAdapter|Callbacks\.|\.on_checkpoint"
#: A function of a training loop, and Ray's class: its row is under what is outside.
OF_OURS += r"|tune\.report|tune\.(Experiment)?Analysis|^Agent"


def test_each_verb_has_a_row_with_a_door(run):
    verbs = re.findall(r"^  (\w+)  ", run("--help")[1], re.MULTILINE)
    assert len(verbs) > 10
    rows = [row for row in TABLES.splitlines() if row.count("|") == 6]
    for verb in verbs:
        assert any(f"`{verb}`" in row.split("|")[1] for row in rows), verb
    named = {door for row in rows[2:] for door in re.findall(r"`(\w+)`", row.split("|")[5])}
    named |= set(re.findall(r"door (?:is )?`(\w+)`", TABLES))
    assert named == set(DOORS)


def taking_paths():
    for module in ("", *rllib_compat.PUBLIC_MODULES):
        home = importlib.import_module(f"rllib_compat.{module}".rstrip("."))
        for name in home.__all__ if hasattr(home, "__all__") else ():
            found = getattr(home, name)
            place = f"{module}.{name}".lstrip(".")
            yield from ((place, one) for one in [found] if takes_path(one))
            for method, one in vars(found).items() if inspect.isclass(found) else ():
                if not method.startswith("_") and takes_path(one):
                    yield f"{place}.{method}", one


def takes_path(found):
    if not callable(found) or not getattr(found, "__module__", "").startswith("rllib_compat"):
        return False
    try:
        parameters = inspect.signature(found).parameters
    except (TypeError, ValueError):
        return False
    return any(name in PATHS or "Path" in str(p.annotation) for name, p in parameters.items())


def test_each_public_function_that_takes_a_path_has_a_row():
    pytest.importorskip("ray")
    names = {name for name, _ in taking_paths() if not re.search(OF_OURS, name)}
    assert len(names) > 15
    missing = {
        name
        for name in names
        if f"`{name}`" not in TABLES and f"`{name.rpartition('.')[0]}`" not in TABLES
    }
    assert not missing
