"""Trees of the installed Ray that somebody else may have written: verified and converted again."""

import os
import pickle
import shutil
from contextlib import suppress

import numpy as np
import pytest

from rllib_compat import Given, convert, verify
from rllib_compat.errors import CompatError
from tests import disk
from tests.legacy.cases import find
from tests.marks import CONVERSIONS

pytestmark = CONVERSIONS

OLD = next(c for c in find(ray="0.8.5") if c.variant == "worker1")
GIVEN = Given(algorithm="PPO")


@pytest.fixture(scope="module")
def converted(tmp_path_factory):
    target = tmp_path_factory.mktemp("converted") / "new"
    convert(OLD.checkpoint, target, given=GIVEN, inputs=5)
    return target


@pytest.fixture
def tree(converted, tmp_path):
    return shutil.copytree(converted, tmp_path / "tree")


def test_a_trees_steps_are_there_after_another_conversion(tmp_path):
    (old,) = [c for c in find(ray="1.13.0", algorithm="DQN") if c.path.name == "dqn-torch-hiddens2"]
    given = Given(algorithm="DQN", env="CartPole-v1")
    first = convert(old.checkpoint, tmp_path / "first", given=given, inputs=5)
    assert first.checkpoint.counters.env_steps == 400
    given = Given(env="CartPole-v1")
    again = convert(tmp_path / "first", tmp_path / "again", given=given, inputs=5)
    assert again.checkpoint.counters.env_steps == 400


class Attack:
    """Makes a folder when it is unpickled."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return os.mkdir, (str(self.mark),)


def plant(tree, mark):
    """Puts an attack into every pickle of a tree, beside what it holds."""
    for file in tree.rglob("*.pkl"):
        content = file.read_bytes()
        # A pickle ends at its STOP; the attack comes first, and its result is dropped.
        attack = pickle.dumps(Attack(mark), protocol=2)
        file.write_bytes(attack[:-1] + b"0" + content[2:] if content[:1] == b"\x80" else content)


def test_verify_finds_a_tree_whose_weights_are_others(tree):
    assert verify(OLD.checkpoint, tree, given=GIVEN, inputs=20).equal
    (file,) = tree.glob("**/rl_module/default_policy/module_state.*")
    state = pickle.loads(file.read_bytes())
    name = next(iter(state))
    state[name] = state[name] + np.float32(1e-2)
    file.write_bytes(pickle.dumps(state))
    rows = verify(OLD.checkpoint, tree, given=GIVEN, inputs=20).differences
    assert not all(row.ok for row in rows)


def test_verify_runs_nothing_of_either_tree(tree, tmp_path):
    plant(tree, tmp_path / "executed")
    with suppress(CompatError):
        verify(OLD.checkpoint, tree, given=GIVEN, inputs=5)
    assert not (tmp_path / "executed").exists()
    with suppress(Exception):
        pickle.loads((tree / "class_and_ctor_args.pkl").read_bytes())  # it was armed
    assert (tmp_path / "executed").exists()


def test_no_pickle_of_a_source_reaches_the_target(tree, load, tmp_path):
    """A tree of the installed Ray is written anew, and not copied."""
    plant(tree, tmp_path / "executed")
    try:
        convert(tree, tmp_path / "again", inputs=5)
    except CompatError:
        assert not (tmp_path / "again").exists()
    else:
        load(tmp_path / "again")
    assert not (tmp_path / "executed").exists()


@pytest.mark.newest
@pytest.mark.skipif(not disk.can_mount(), reason="no file system can be mounted here")
def test_a_disk_that_is_too_small_for_a_tree_is_told_and_keeps_what_it_had():
    """Ray writes some thirty files, and any of them may be the one that does not fit."""
    found = disk.in_namespace("checkpointable", step=11)
    assert found.left == []
    assert found.refused >= 6
    assert found.told == ["The disk is full.", "The disk is read-only."]
    assert found.fitted == 2


def test_a_tree_of_the_installed_ray_is_written_anew_and_is_the_same(tree, tmp_path):
    done = convert(tree, tmp_path / "again", inputs=20)
    assert done.trains_on
    assert done.largest_difference < 1e-5
    assert verify(OLD.checkpoint, tmp_path / "again", given=GIVEN).equal
