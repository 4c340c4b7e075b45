"""`rllib-compat doctor`, and what `pyproject.toml` declares."""

import ast
import json
import sys
from importlib import metadata

import pytest

from rllib_compat.neutral import install_command
from tests.docs import ROOT

#: What an import is called, where the package is called otherwise.
PACKAGES = {"yaml": "pyyaml", "tree": "dm-tree", "msgpack_numpy": "msgpack-numpy"}
#: Asked for, and done without where they are not there: old code's gym
#: and what its callbacks and environments were of; a faster runtime.
OPTIONAL = {"gym", "onnxruntime", "tensorflow", "numba", "wandb", "psutil", "recsim"}
#: In a package that is declared.
INSIDE = {"cloudpickle": "ray", "pandas": "ray"}

REQUIRED = [
    "click>=8.0",
    "numpy>=1.26",
    'ray[rllib,tune]>=2.40; extra == "ray"',
    'torch>=2.0; extra == "ray"',
    'onnx>=1.15; extra == "onnx"',
]


def imports():
    """Every name of a package that a file of ours imports, at its top or inside a function."""
    for file in sorted((ROOT / "rllib_compat").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or ""]
            else:
                continue
            for name in names:
                yield name.partition(".")[0], file.name


def test_every_import_is_declared():
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    found = {name for name, _ in imports()} - set(sys.stdlib_module_names) - {"rllib_compat"}
    assert {"click", "numpy", "ray", "torch", "yaml", "onnx"} <= found
    missing = [
        name
        for name in sorted(found - OPTIONAL)
        if f'"{PACKAGES.get(name, INSIDE.get(name, name))}' not in text
    ]
    assert missing == []


@pytest.fixture
def installed(monkeypatch):
    """Lets a test say which packages are installed."""

    def say(**versions):
        def version(name):
            if name not in versions:
                raise metadata.PackageNotFoundError(name)
            return versions[name]

        monkeypatch.setattr(metadata, "version", version)
        monkeypatch.setattr(metadata, "requires", lambda _: REQUIRED)
        monkeypatch.setattr(metadata, "metadata", lambda _: _Extras())

    return say


class _Extras:
    def get_all(self, name):
        assert name == "Provides-Extra"
        return ["ray", "onnx"]


LIGHT = {"rllib-compat": "0.2.0", "click": "8.1.7", "numpy": "2.1.0"}


def test_a_light_install_is_sound_and_says_what_it_does(installed, run):
    installed(**LIGHT)
    code, out, _ = run("doctor", "--json")
    told = json.loads(out)
    assert code == 0
    assert told["faults"] == []
    assert [use for use, works in told["works"].items() if works] == [
        "inspect, config, convert --to msgpack, load_policy"
    ]


def test_half_an_extra_and_an_old_ray_are_told_with_the_command(installed, run):
    installed(**LIGHT, ray="2.9.3")
    code, out, _ = run("doctor", "--json")
    assert code == 1
    old, torch = json.loads(out)["faults"]
    assert old == f"ray 2.9.3 is installed, and >=2.40 is needed: {install_command('ray')}"
    assert torch == f"torch is not installed, and >=2.0 is needed: {install_command('ray')}"


def test_a_ray_newer_than_the_tested_ones_works_and_is_told(installed, run):
    installed(**LIGHT, ray="3.1.0", torch="2.9")
    code, out, _ = run("doctor", "--json")
    told = json.loads(out)
    assert code == 1
    assert told["faults"] == ["Ray 3.1.0 is newer than those that were tested (2.40 to 2.60)"]
    assert told["works"]["convert, verify, Trainer, load, train, evaluate, demo, run"]


def test_files_without_an_installation_are_told_apart(installed, run):
    installed()
    code, _, err = run("doctor")
    assert (code, "pip install ." in err) == (2, True)


@pytest.mark.parametrize(
    ("noted", "command"),
    [
        (None, "pip install 'rllib-compat[ray,plot]'"),
        ({"url": "{here}", "dir_info": {"editable": True}}, "pip install -e '{path}[ray,plot]'"),
        ({"url": "{here}", "dir_info": {}}, "pip install '{path}[ray,plot]'"),
        ({"url": "{here}", "archive_info": {}}, "pip install 'rllib-compat[ray,plot] @ {here}'"),
        ({"url": "{here}/gone.whl", "archive_info": {}}, "pip install 'rllib-compat[ray,plot]'"),
        ({"url": "git+https://a.b/c", "vcs_info": {}}, "pip install 'rllib-compat[ray,plot]'"),
    ],
)
def test_an_extra_is_installed_from_where_the_package_came(noted, command, tmp_path, monkeypatch):
    where = {"{here}": tmp_path.as_uri(), "{path}": str(tmp_path)}
    text = json.dumps(noted) if noted else None
    for name, value in where.items():
        text, command = text and text.replace(name, value), command.replace(name, value)

    class Installed:
        def read_text(self, name):
            return text if name == "direct_url.json" else None

    monkeypatch.setattr(metadata, "distribution", lambda _: Installed())
    assert install_command("ray", "plot") == command
