"""Modules that a command line names are old code, and say themselves what fails in them."""

import shutil

import pytest

from rllib_compat import legacy
from tests.processes import start

legacy.deactivate()

OLD = """
import gym
import numpy as np
from gym.spaces import Box, Discrete
from ray.rllib.agents.callbacks import DefaultCallbacks
from ray.rllib.agents.ppo import DEFAULT_CONFIG

class Walk(gym.Env):
    observation_space = Box(-1, 1, (2,), np.float32)
    action_space = Discrete(2)

CONFIG = dict(DEFAULT_CONFIG, env=Walk, callbacks=DefaultCallbacks, sgd_minibatch_size=np.int(32))
"""


def test_a_config_is_computed_by_old_code(tmp_path):
    (tmp_path / "old.py").write_text(OLD)
    done = start(tmp_path, "config", "old.py:CONFIG", "--algorithm", "PPO")
    assert "minibatch_size=32" in done.stdout, done.stderr


VERBS = [
    ("evaluate", "checkpoint", "--env", "{}:Walk"),
    ("convert", "checkpoint", "new", "--env", "{}:Walk"),
]


@pytest.mark.parametrize("verb", VERBS, ids=[verb[0] for verb in VERBS])
def test_what_fails_in_a_module_is_said(tmp_path, monkeypatch, run, verb):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.py").write_text("import gym\nfrom no_such_package import Env\n")
    code, _, told = run(*(word.format("broken") for word in verb))
    assert code == 2
    assert "No module named 'no_such_package'" in told
    assert "broken.py:2" in told
    assert not legacy.is_active()


def test_an_installed_package_of_old_code_is_named(tmp_path):
    package = tmp_path / "site-packages/their_package"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("from ray.rllib.agents.ppo import PPOTrainer\n")
    (tmp_path / "old.py").write_text(
        "import sys\nsys.path.insert(0, 'site-packages')\nimport their_package\n"
        "print(their_package.PPOTrainer.__name__)\n"
    )
    done = start(tmp_path, "run", "old.py")
    assert done.returncode == 1
    assert "run --package their_package" in done.stderr
    assert start(tmp_path, "run", "--package", "their_package", "old.py").stdout == "PPOTrainer\n"


def test_a_gym_that_is_too_new_for_an_installed_package_is_named(tmp_path):
    installed = tmp_path / "site-packages"
    for name, code in {
        "gym/__init__.py": "",
        "gym/utils/__init__.py": "",
        "gym/utils/seeding.py": "import numpy\n\ndef np_random(seed):\n"
        "    return numpy.random.default_rng(seed), seed\n",
        "zoo/__init__.py": "from gym.utils.seeding import np_random\n\n"
        "SIZE = np_random(3)[0].randint(4)\n",
    }.items():
        (installed / name).parent.mkdir(parents=True, exist_ok=True)
        (installed / name).write_text(code)
    (tmp_path / "old.py").write_text(
        "import sys\nsys.path.insert(0, 'site-packages')\nimport zoo\nprint(zoo.SIZE)\n"
    )
    assert "uninstall gym" in (told := start(tmp_path, "run", "old.py").stderr)
    assert "run --package zoo" in told
    shutil.rmtree(installed / "gym")
    assert start(tmp_path, "run", "--package", "zoo", "old.py").stdout.strip() in "0123"


def test_a_folder_called_gym_beside_a_script_is_no_gym(tmp_path):
    (tmp_path / "gym").mkdir()
    (tmp_path / "old.py").write_text("import gym\nprint(gym.make.__module__)\n")
    assert start(tmp_path, "run", "old.py").stdout == "rllib_compat.gym.registration\n"
