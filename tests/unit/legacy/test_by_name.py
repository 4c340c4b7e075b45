"""Old modules that are asked for by a name in a string."""

import importlib
import sys

import pytest

from rllib_compat import legacy
from rllib_compat.runtime import find_creator

legacy.deactivate()


@pytest.fixture
def old_imports():
    before = set(sys.modules)
    legacy.activate()
    yield
    legacy.deactivate()
    for name in set(sys.modules) - before:
        if name.startswith("ray.rllib."):
            sys.modules.pop(name, None) if "examples" in name or "agents" in name else None


def test_a_dotted_name_in_a_config_is_that_of_an_old_environment(old_imports):
    made = find_creator("ray.rllib.examples.env.simple_corridor.SimpleCorridor")
    assert made({"corridor_length": 3}).reset() == [0]


def test_an_environment_that_ray_has_moved_further_down_is_found(old_imports):
    made = find_creator("ray.rllib.examples.env.bandit_envs_discrete.WheelBanditEnv")
    assert made({"delta": 0.3}).delta == 0.3


def test_importlib_finds_old_modules_for_user_code_alone(old_imports):
    assert importlib.import_module("ray.rllib.agents.ppo").PPOTrainer.__name__ == "PPOTrainer"


def test_without_activation_importlib_finds_none():
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("ray.rllib.agents.dqn")
