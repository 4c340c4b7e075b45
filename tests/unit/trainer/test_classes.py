"""The trainers' old names."""

import pickle
import subprocess
import sys

import pytest

import rllib_compat as compat
from rllib_compat.errors import GoneError, RefusedKeysError


def test_importing_the_package_imports_nothing_heavy():
    code = (
        "import sys, rllib_compat; rllib_compat.translate; "
        "print({'ray', 'torch', 'gymnasium', 'tensorflow'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize(
    ("name", "algorithm"),
    [
        ("PPOTrainer", "PPO"),
        ("PPOAgent", "PPO"),
        ("ImpalaTrainer", "IMPALA"),
        ("ApexTrainer", "APEX"),
        ("SimpleQTrainer", "SimpleQ"),
        ("SAC", "SAC"),
    ],
)
def test_one_class_a_name(name, algorithm):
    found = getattr(compat, name)
    assert found._algorithm_name == algorithm
    assert issubclass(found, compat.Trainer)
    assert pickle.loads(pickle.dumps(found)) is found
    assert getattr(compat, name) is found


def test_an_agent_is_a_trainer():
    assert compat.Agent is compat.Trainer


@pytest.mark.parametrize("name", ["A3CTrainer", "ESTrainer", "QMixTrainer", "MADDPGTrainer"])
def test_what_ray_has_no_more_says_so_when_it_is_made(name):
    with pytest.raises(RefusedKeysError, match="was removed from RLlib") as error:
        getattr(compat, name)(config={})
    assert error.value.fix


def test_other_names_are_attribute_errors():
    assert not hasattr(compat, "NoSuchTrainer")
    assert not hasattr(compat, "__path_of_nothing__")


def test_classes_with_other_defaults():
    mine = compat.PPOTrainer.with_updates(name="Mine", default_config={"num_sgd_iter": 3})
    assert (mine.__name__, mine._algorithm_name) == ("Mine", "PPO")
    assert mine.get_default_config()["num_sgd_iter"] == 3
    assert compat.PPOTrainer.get_default_config()["num_sgd_iter"] == 30
    named = type("Named", (compat.PPOTrainer,), {"_name": "my trainer"})  # what it was shown as
    assert named._algorithm_name == "PPO"
    with pytest.raises(GoneError, match="execution_plan"):
        compat.PPOTrainer.with_updates(execution_plan=print)
