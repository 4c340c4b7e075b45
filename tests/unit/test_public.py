"""The public line: what may be imported, and what pickles name, stays."""

import importlib
import pickle
import subprocess
import sys
from importlib import metadata

import pytest

import rllib_compat
from rllib_compat import adapters, errors, modules
from rllib_compat.errors import CompatError, RayNotSupportedError
from rllib_compat.neutral import install_command
from rllib_compat.neutral.public import public
from rllib_compat.ray_versions import releases

#: The rooms that others talk to, besides the modules that stay.
ROOMS = (
    *("algorithms", "config", "conversion", "formats", "networks", "neutral", "policy"),
    *("registry", "runtime", "trainer", "trials", "upgrade"),
)
NAMED = [(module, name) for module in (adapters, modules) for name in module.__all__]


@pytest.mark.parametrize(("module", "name"), NAMED, ids=[name for _, name in NAMED])
def test_what_checkpoints_name_is_found_wherever_its_file_is(module, name):
    found = getattr(module, name)
    assert (found.__module__, found.__qualname__) == (module.__name__, name)
    assert pickle.loads(pickle.dumps(found)) is found


def test_names_in_checkpoints_of_version_0_2_are_still_found():
    assert adapters.TellingEnvRunner is adapters.CompatEnvRunner
    assert adapters.TellingLearner is adapters.CallbackLearner


def test_a_public_class_travels_by_name_even_before_its_module_is_asked_for():
    # cloudpickle puts the code of a class into the pickle if its module is not imported.
    code = (
        "from ray import cloudpickle; from rllib_compat.runtime.policy_mapping import MappingFn;"
        "print(len(cloudpickle.dumps(MappingFn)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(run.stdout) < 100


def test_a_name_that_is_not_public_is_not_there():
    with pytest.raises(AttributeError, match=r"rllib_compat\.adapters.*nothing"):
        _ = adapters.nothing


def test_public_names_can_be_listed_and_imported():
    assert {"PPOTrainer", "Trainer", "translate", "errors"} <= set(dir(rllib_compat))
    for name in rllib_compat.__all__:
        assert getattr(rllib_compat, name) is not None
    for name in rllib_compat.PUBLIC_MODULES:
        assert getattr(rllib_compat, name) is importlib.import_module(f"rllib_compat.{name}")
    assert set(adapters.__all__) <= set(dir(adapters))
    assert set(modules.__all__) <= set(dir(modules))


def test_every_error_is_public():
    found = [CompatError]
    for error in found:  # grows as it is read
        found += [e for e in error.__subclasses__() if e.__module__ == CompatError.__module__]
    assert len(found) > 10
    assert all(getattr(errors, error.__name__) is error for error in found)


@pytest.mark.parametrize("room", ROOMS)
def test_what_a_room_lists_is_there(room):
    found = importlib.import_module(f"rllib_compat.{room}")
    assert found.__doc__
    assert all(getattr(found, name) is not None for name in found.__all__)


def test_public_gives_a_module_and_imports_it():
    @public("rllib_compat.adapters")
    def given():
        pass

    assert given.__module__ == "rllib_compat.adapters"


def test_without_ray_a_trainer_says_what_to_install(monkeypatch):
    def not_there(name):
        raise ModuleNotFoundError(f"No module named {name!r}", name="ray")

    def not_installed(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(rllib_compat, "_find", not_there)
    monkeypatch.setattr(metadata, "version", not_installed)
    releases.installed.cache_clear()
    try:
        with pytest.raises(RayNotSupportedError) as told:
            rllib_compat.PPOTrainer  # noqa: B018
        assert told.value.fix == install_command("ray")
    finally:
        releases.installed.cache_clear()
