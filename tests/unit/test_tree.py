"""States of a Checkpointable tree as data: what a trainer restores of a folder that others made."""

import json
import os
import pickle
import shutil
from collections import OrderedDict, deque

import numpy as np
import pytest

from rllib_compat.adapters import EpisodeRecord
from rllib_compat.errors import BudgetExceededError, CheckpointError, CorruptCheckpointError
from rllib_compat.formats import read_checkpoint, read_states
from rllib_compat.neutral import Budget
from tests.legacy.cases import MUSEUM
from tests.marks import marked


class Canary:
    """Leaves a folder behind where it is unpickled."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


def write(folder, **states):
    for name, state in states.items():
        file = folder / f"{name.replace('__', '/')}.pkl"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(pickle.dumps(state))
    return folder


def test_a_state_comes_back_as_it_was(tmp_path):
    shared = [1, 2]
    state = {
        ("a", 1): np.arange(6.0).reshape(2, 3),
        "scalar": np.float32(1.5),
        "ordered": OrderedDict(b=1, a=None),
        "last": deque([1.0, 2.0], maxlen=5),
        "parts": (True, b"x", {3}, shared, shared),
    }
    write(tmp_path, algorithm_state=state, learner_group__learner__state={"n": 1})
    found = read_states(tmp_path)
    assert set(found) == {"algorithm_state", "learner_group/learner/state"}
    got = found["algorithm_state"]
    assert np.array_equal(got.pop(("a", 1)), state.pop(("a", 1)))
    assert got == state
    assert type(got["scalar"]) is np.float32
    assert (type(got["ordered"]), list(got["ordered"])) == (OrderedDict, ["b", "a"])
    assert got["last"].maxlen == 5
    assert got["parts"][3] is got["parts"][4]


@pytest.mark.parametrize("name", ["algorithm_state", "state", "env_runner__state"])
def test_code_in_a_state_is_refused_and_does_not_run(tmp_path, name):
    folder = write(tmp_path / "tree", **{name: {"inner": [Canary(tmp_path / "ran")]}})
    with pytest.raises(CheckpointError, match=r"mkdir.*\n?[\s\S]*inner[\s\S]*trusted=True"):
        read_states(folder)
    assert not (tmp_path / "ran").exists()


def test_what_makes_components_is_not_read(tmp_path):
    write(tmp_path / "tree", state={}, class_and_ctor_args=Canary(tmp_path / "ran"))
    assert read_states(tmp_path / "tree") == {"state": {}}
    assert not (tmp_path / "ran").exists()


def test_a_key_that_may_be_code_is_left_out_only_where_it_is(tmp_path):
    write(tmp_path, a__state={"to_train": os.mkdir}, b__state={"to_train": ["p"]})
    found = read_states(tmp_path, unless_code={"to_train"})
    assert found == {"a/state": {}, "b/state": {"to_train": ["p"]}}


def test_known_objects_are_made_of_their_attributes(tmp_path):
    record = EpisodeRecord(3, 2.0, {("a", "p"): 2.0}, {"m": float(1)})
    write(tmp_path, state=[record])
    makers = {"rllib_compat.adapters.EpisodeRecord": lambda attributes: EpisodeRecord(**attributes)}
    assert read_states(tmp_path, makers) == {"state": [record]}


def test_a_value_inside_itself_is_refused(tmp_path):
    loop = []
    loop.append(loop)
    write(tmp_path, state=loop)
    with pytest.raises(CorruptCheckpointError, match="contains itself"):
        read_states(tmp_path)


def test_a_link_that_leads_out_of_the_tree_is_refused(tmp_path):
    write(tmp_path / "elsewhere", state={"secret": 1})
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/env_runner").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CorruptCheckpointError, match="points outside"):
        read_states(tmp_path / "tree")


def test_a_tower_of_folders_is_refused(tmp_path):
    (tmp_path / "/".join("d" * 40)).mkdir(parents=True)
    with pytest.raises(CorruptCheckpointError, match="too deeply"):
        read_states(tmp_path)


def test_all_states_of_a_tree_spend_from_one_budget(tmp_path):
    """A tree may have thousands of folders; each with a budget of its own, there would be none."""
    for number in range(5):
        write(tmp_path, **{f"part{number}__state": list(range(1000))})
    budget = Budget()
    read_states(tmp_path, budget=budget)
    spent = Budget().bytes - budget.bytes
    assert spent == sum(file.stat().st_size for file in tmp_path.rglob("*.pkl"))
    with pytest.raises(BudgetExceededError, match="bytes"):
        read_states(tmp_path, budget=Budget(bytes=spent - 1))


def doubled(part):
    for _ in range(40):
        part = [part, part]
    return part


def nested(part):
    for _ in range(120):
        part = EpisodeRecord(part, 0.0, {})
    return part


BYTES = bytes(1 << 20)


class OfTheSameBytes:
    """Pickles as an array whose bytes stand in the file once for all of them."""

    def __reduce__(self):
        make, arguments, _ = np.zeros(0).__reduce__()
        return make, arguments, (1, (len(BYTES),), np.dtype("u1"), False, BYTES)


SMALL_AND_LARGE = {
    "a list of itself twice, 40 times over": doubled([1]),
    "records inside of records": nested(None),
    "lists inside of lists": json.loads("[" * 90 + "]" * 90),
    "one block of bytes under 300 arrays": [OfTheSameBytes() for _ in range(300)],
}


@pytest.mark.parametrize("what", SMALL_AND_LARGE)
def test_a_state_that_stands_for_much_more_is_refused(what, tmp_path):
    """Ray walks through what it is given, and each shared part would be met again."""
    write(tmp_path, state=SMALL_AND_LARGE[what])
    with pytest.raises(BudgetExceededError):
        read_states(tmp_path, {"rllib_compat.adapters.EpisodeRecord": dict})


#: Trees of Ray itself, which have no manifest: one policy and two, one optimizer and more.
TREES = [
    *("2.40.0/ppo-torch_new-small-relu", "2.40.0/ppo-torch_new-ma-tuples"),
    *("2.40.0/sac-torch_new-cont", "2.35.0/ppo-torch_new-lstm"),
]


def parts_of(path):
    """What training goes on from."""
    read = read_checkpoint(path)
    policies = {
        policy.old_id: (
            {name: np.asarray(array).tobytes() for name, array in policy.weights.items()},
            *map(repr, (policy.observation_filter, policy.optimizer, policy.exploration)),
        )
        for policy in read.policies.values()
    }
    return policies, repr(read.counters)


def require_whole_or_refused(tree):
    """Takes each file and folder of a tree away in turn; returns how many were missed."""
    whole, refused = parts_of(tree), 0
    for item in sorted(tree.rglob("*"), reverse=True):
        item.rename(tree.parent / "away")
        try:
            assert parts_of(tree) == whole, item
        except CheckpointError as error:
            refused += bool(error.where)
        (tree.parent / "away").rename(item)
    return refused


@pytest.mark.parametrize("name", marked(TREES, TREES[1:2]))
def test_a_tree_without_any_of_its_files_or_folders_is_refused_or_the_same(name, tmp_path):
    """A pipeline without its folder was read, and what its filter had learned was lost."""
    tree = shutil.copytree(MUSEUM / name / "ckpt", tmp_path / "tree")
    assert require_whole_or_refused(tree) > 20


@pytest.mark.parametrize("name", ["MeanStdFilter", "."])
def test_a_filter_whose_folder_is_missing_is_named(name, tmp_path):
    tree = shutil.copytree(MUSEUM / TREES[0] / "ckpt", tmp_path / "tree")
    pipeline = tree / "env_runner" / "env_to_module_connector"
    (pipeline / "MeanStdFilter").mkdir()
    (pipeline / "MeanStdFilter" / "state.pkl").write_bytes(pickle.dumps({}))
    made = b"cray.rllib.connectors.env_to_module.mean_std_filter\nMeanStdFilter\n"
    (pipeline / "class_and_ctor_args.pkl").write_bytes(
        b"}S'ctor_args_and_kwargs'\n((t}S'connectors'\n((" + made + b"(t}tlsts."
    )
    read_checkpoint(tree)
    shutil.rmtree(pipeline / name)
    with pytest.raises(CorruptCheckpointError) as caught:
        read_checkpoint(tree)
    assert "env_to_module_connector" in str(caught.value)
