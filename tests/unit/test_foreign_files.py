"""Checkpoints as people have them: pointers, web pages, archives, lost files, odd folders."""

import shutil

import pytest

from rllib_compat import convert, inspect
from rllib_compat.errors import (
    CheckpointError,
    MissingFileError,
    MissingInformationError,
    UnknownLayoutError,
)
from rllib_compat.formats import read_checkpoint
from rllib_compat.neutral import Severity
from tests.legacy.cases import find

POINTER = b"""version https://git-lfs.github.com/spec/v1
oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393
size 2104332
"""
PAGES = {
    b"<!DOCTYPE html>\n<html><head><title>404: Not Found</title></head>": "web page, '404: Not Fo",
    b'<?xml version="1.0"?>\n<Error><Code>AccessDenied</Code></Error>': "AccessDenied",
    b'{"message": "Not Found", "documentation_url": "https://docs"}': "'Not Found'",
    b"../../.git/annex/objects/Kq/9/SHA256E-s12--ab": "git-annex",
    b"": "empty",
}


@pytest.fixture
def trial(tmp_path):
    """A trial's folder of Ray 0.8.5."""
    case = next(c for c in find(ray="0.8.5") if c.variant == "worker1")
    return shutil.copytree(case.path, tmp_path / "PPO_CartPole-v0_0")


def file_of(trial):
    return trial / "checkpoint_2/checkpoint-2"


def policies_folder(tmp_path):
    case = next(c for c in find(ray="2.10.0", algorithm="PPO") if c.stack == "old")
    return shutil.copytree(case.checkpoint, tmp_path / "checkpoint_000002")


def tree(tmp_path):
    case = find(ray="2.40.0", algorithm="PPO", variant="small-relu")[0]
    return shutil.copytree(case.checkpoint, tmp_path / "checkpoint_000000")


def msgpack(tmp_path):
    case = next(c for c in find(ray="0.8.5") if c.variant == "worker1")
    convert(case.checkpoint, tmp_path / "msgpack", to="msgpack", inputs=2)
    return tmp_path / "msgpack"


PLACES = [
    (policies_folder, "algorithm_state.pkl"),
    (policies_folder, "policies/default_policy/policy_state.pkl"),
    (tree, "class_and_ctor_args.pkl"),
    (tree, "algorithm_state.pkl"),
    (tree, "learner_group/learner/state.pkl"),
    (tree, "learner_group/learner/rl_module/default_policy/module_state.pt"),
    (msgpack, "algorithm_state.msgpck"),
    (msgpack, "policies/default_policy/policy_state.msgpck"),
]


@pytest.mark.parametrize(
    ("make", "file"), PLACES, ids=lambda value: getattr(value, "__name__", value)
)
def test_a_git_lfs_pointer_in_any_place_is_told_with_the_command(make, file, tmp_path):
    folder = make(tmp_path)
    place = folder / file
    assert place.is_file()
    place.write_bytes(POINTER)
    with pytest.raises(MissingFileError, match=r"pointer: the file itself of 2,104,332") as caught:
        read_checkpoint(folder)
    assert "git lfs pull" in str(caught.value)
    assert caught.value.where == place.relative_to(folder).as_posix()


def test_a_pointer_in_the_place_of_a_json_file_is_reported_as_one(tmp_path):
    folder = policies_folder(tmp_path)
    (folder / "rllib_checkpoint.json").write_bytes(POINTER)
    rows = [row for row in read_checkpoint(folder).findings if row.path == "rllib_checkpoint.json"]
    assert [row.message.partition(":")[0] for row in rows] == ["left out"]
    assert "Git-LFS" in rows[0].message


def test_inspect_shows_config_and_counters_beside_a_pointer(trial):
    file_of(trial).write_bytes(POINTER)
    found = inspect(trial)
    assert found.algorithm == "PPO"
    assert found.counters.iteration == 2
    assert found.config
    (row,) = (f for f in found.report if f.severity is Severity.ERROR)
    assert "git lfs pull" in row.hint
    assert found.report.exit_code == 1


def test_metadata_without_its_file_shows_what_it_tells(trial):
    file_of(trial).unlink()
    with pytest.raises(MissingFileError, match="does not exist"):
        read_checkpoint(trial / "checkpoint_2")
    for path in (trial, trial / "checkpoint_2", trial / "checkpoint_2/checkpoint-2"):
        found = inspect(path)
        assert found.ray_version == "0.8.5"
        (row,) = (f for f in found.report if f.severity is Severity.ERROR)
        assert (row.path, row.message) == ("checkpoint-2", "The file does not exist.")


def test_a_trial_whose_last_checkpoint_is_lost_says_that_an_earlier_one_was_taken(trial):
    later = shutil.copytree(trial / "checkpoint_2", trial / "checkpoint_10")
    (later / "checkpoint-2").unlink()
    for file in later.glob("checkpoint-2*"):
        file.rename(later / file.name.replace("checkpoint-2", "checkpoint-10"))
    (row,) = (f for f in read_checkpoint(trial).findings if f.rule == "missing")
    assert row.path == "checkpoint_10/checkpoint-10"
    assert "checkpoint-2 was taken" in row.message


def test_a_folder_without_policies_still_shows_its_config(tmp_path):
    folder = policies_folder(tmp_path)
    (folder / "policies/default_policy/policy_state.pkl").unlink()
    found = inspect(folder)
    assert found.checkpoint.algorithm == "PPO"
    assert found.checkpoint.counters.iteration == 2


@pytest.mark.parametrize(("content", "told"), PAGES.items(), ids=PAGES.values())
def test_what_was_downloaded_instead_of_the_file_is_told(trial, content, told):
    file_of(trial).write_bytes(content)
    with pytest.raises(MissingFileError, match=told):
        read_checkpoint(file_of(trial))


def test_a_config_that_is_a_pointer_is_told_where_the_config_is_needed(trial):
    for name in ("params.pkl", "params.json"):
        (trial / name).write_bytes(POINTER)
    with pytest.raises(MissingInformationError, match="Git-LFS pointer"):
        convert(trial / "checkpoint_2", "unused", dry_run=True)


def test_an_empty_config_that_was_given_means_rays_defaults(trial):
    (trial / "params.pkl").unlink()
    (trial / "params.json").unlink()
    (trial / "case.json").unlink()
    with pytest.raises(MissingInformationError, match=r"config=\{\}"):
        convert(trial / "checkpoint_2", "unused", dry_run=True)
    assert convert(trial / "checkpoint_2", "unused", config={}, dry_run=True).networks


@pytest.mark.parametrize("kind", ["zip", "tar", "gztar", "bztar", "xztar"])
def test_an_archive_is_to_be_unpacked(trial, kind, tmp_path):
    archive = shutil.make_archive(str(tmp_path / "packed"), kind, trial)
    with pytest.raises(UnknownLayoutError, match="It is an archive") as caught:
        read_checkpoint(archive)
    assert "Unpack it" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "told", "todo"),
    [
        ("params.json", "config of a trial", "rllib-compat config"),
        ("params.pkl", "config of a trial", "rllib-compat config"),
        ("progress.csv", "has logged", "rllib-compat plot"),
        ("experiment_state-2022-01-01.json", "Tune kept of an experiment", "--recursive"),
        ("checkpoint-2.tune_metadata", "Tune kept of a checkpoint", "checkpoint-N"),
        (".is_checkpoint", "Tune kept of a checkpoint", "checkpoint-N"),
        ("learner_state.json", "a part of a checkpoint", "folder"),
        ("state.pkl", "a part of a checkpoint", "folder"),
        ("rllib_checkpoint.json", "a part of a checkpoint", "folder"),
        ("policy.onnx", "exported to ONNX", "exported from"),
        ("model.h5", "Keras", "exported from"),
        ("saved_model.pb", "TensorFlow's own", "exported from"),
        ("model.data-00000-of-00001", "TensorFlow's own", "exported from"),
        ("weights.npz", "numpy's arrays", "taken from"),
    ],
)
def test_a_file_that_lies_beside_checkpoints_is_told_by_its_name(tmp_path, name, told, todo):
    (tmp_path / name).write_bytes(b"\x80\x04}.")
    with pytest.raises(UnknownLayoutError, match=told) as caught:
        read_checkpoint(tmp_path / name)
    assert todo in caught.value.fix


MODULES = "learner_group/learner/rl_module"


@pytest.mark.parametrize(
    ("make", "part"),
    [
        (policies_folder, "policies"),
        (policies_folder, "policies/default_policy"),
        (policies_folder, "policies/default_policy/policy_state.pkl"),
        (policies_folder, "algorithm_state.pkl"),
        (tree, "algorithm_state.pkl"),
        (tree, MODULES),
        (tree, f"{MODULES}/default_policy"),
        (tree, f"{MODULES}/default_policy/module_state.pt"),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_a_part_that_is_given_has_the_policies_of_the_whole(make, part, tmp_path):
    folder = make(tmp_path)
    whole, read = read_checkpoint(folder), read_checkpoint(folder / part)
    assert read.policies.keys() == whole.policies.keys()
    for policy_id, policy in whole.policies.items():
        found = read.policies[policy_id]
        assert found.weights.keys() == policy.weights.keys()
        assert all((found.weights[k] == v).all() for k, v in policy.weights.items())
        assert found.observation_space == policy.observation_space
        assert found.observation_filter == policy.observation_filter
    assert read.modules_alone is part.startswith(MODULES)
    if not read.modules_alone:
        assert read.config["train_batch_size"] == whole.config["train_batch_size"]


@pytest.mark.parametrize("make", [policies_folder, tree])
def test_an_algorithms_state_alone_says_which_folder_is_missing(make, tmp_path):
    state = tmp_path / "alone/algorithm_state.pkl"
    state.parent.mkdir()
    shutil.copy(make(tmp_path) / state.name, state)
    with pytest.raises(CheckpointError, match=r"policies|learner_group"):
        read_checkpoint(state)


def test_without_its_policies_a_checkpoint_still_shows_its_config(tmp_path):
    folder = policies_folder(tmp_path)
    shutil.rmtree(folder / "policies")
    found = inspect(folder)
    assert (found.algorithm, found.policies) == ("PPO", {})
    (row,) = (f for f in found.report if f.severity is Severity.ERROR)
    assert row.message == "The checkpoint has no policies."


@pytest.mark.parametrize(
    ("make", "lost", "part"),
    [
        (policies_folder, "algorithm_state.pkl", "policies"),
        (tree, "learner_group/learner/state.pkl", MODULES),
    ],
)
def test_what_is_left_is_named_and_can_be_given_alone(make, lost, part, tmp_path):
    folder = make(tmp_path)
    (folder / lost).unlink()
    with pytest.raises(MissingFileError, match=r"does not exist|no state") as caught:
        read_checkpoint(folder)
    assert f"{folder / part}." in caught.value.fix
    assert read_checkpoint(folder / part).policies


def test_a_tree_without_the_state_of_a_module_names_the_module(tmp_path):
    folder = tree(tmp_path)
    (folder / MODULES / "default_policy/module_state.pt").unlink()
    with pytest.raises(MissingFileError, match=r"default_policy") as caught:
        read_checkpoint(folder)
    assert "Copy" in caught.value.fix
    assert inspect(folder).config


def test_a_truncated_file_is_damaged_and_says_so(trial):
    file = file_of(trial)
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(CheckpointError, match=r"ends early|truncated"):
        read_checkpoint(file)


def test_the_iteration_is_known_without_metadata(trial):
    for side_file in (trial / "checkpoint_2").glob("*.tune_metadata"):
        side_file.unlink()
    assert read_checkpoint(file_of(trial)).counters.iteration == 2


def test_a_trials_folder_gives_its_last_checkpoint_of_any_layout(trial, tmp_path):
    later = shutil.copytree(trial / "checkpoint_2", trial / "checkpoint_10")
    for file in later.iterdir():
        file.rename(later / file.name.replace("checkpoint-2", "checkpoint-10"))
    checkpoint = read_checkpoint(trial)
    (note,) = (f for f in checkpoint.findings if f.rule == "several-checkpoints")
    assert "checkpoint-2, checkpoint-10" in note.message
    for make in (policies_folder, tree):
        folder = tmp_path / make.__name__
        folder.mkdir()
        first = make(folder)
        shutil.copytree(first, folder / "checkpoint_000009")
        found = read_checkpoint(folder)
        assert found.source.path.name == "checkpoint_000009"
        assert any(f.rule == "several-checkpoints" for f in found.findings)


def test_a_link_to_a_folder_in_a_trial_is_passed_over(trial):
    (trial / "latest").symlink_to(trial / "checkpoint_2", target_is_directory=True)
    assert read_checkpoint(trial).counters.iteration == 2


def test_an_experiments_folder_lists_its_checkpoints(trial, tmp_path):
    shutil.copytree(trial, tmp_path / "PPO_CartPole-v0_1")
    with pytest.raises(UnknownLayoutError, match="--recursive") as caught:
        read_checkpoint(tmp_path)
    assert "PPO_CartPole-v0_1/checkpoint_2/checkpoint-2" in str(caught.value)


def test_capital_letters_and_a_trailing_slash_are_no_obstacle(trial, tmp_path):
    capital = shutil.copytree(trial, tmp_path / "capital")
    (capital / "checkpoint_2").rename(capital / "Checkpoint_2")
    (capital / "Checkpoint_2/checkpoint-2").rename(capital / "Checkpoint_2/Checkpoint-2")
    assert read_checkpoint(capital).policies
    assert read_checkpoint(f"{capital}/Checkpoint_2/").policies


def test_a_path_of_windows_is_told():
    with pytest.raises(UnknownLayoutError, match="path of Windows"):
        read_checkpoint(r"C:\Users\me\ray_results\checkpoint_100")


def test_a_wrong_number_lists_the_checkpoints_that_are_there(trial):
    with pytest.raises(UnknownLayoutError, match="there are: checkpoint_2"):
        read_checkpoint(trial / "checkpoint_100")


def test_the_first_form_of_ray_2_1_is_read(tmp_path):
    """`state.pkl` and `checkpoint_version.txt`, as nightly builds before Ray 2.1 wrote them."""
    case = find(ray="2.1.0", algorithm="PPO")[0]
    folder = shutil.copytree(case.checkpoint, tmp_path / "first")
    now = read_checkpoint(folder)
    (folder / "algorithm_state.pkl").rename(folder / "state.pkl")
    for place in (folder, *(folder / "policies").iterdir()):
        (place / "rllib_checkpoint.json").unlink(missing_ok=True)
        (place / "checkpoint_version.txt").write_text("v1")
    first = read_checkpoint(folder)
    assert first.algorithm == now.algorithm == "PPO"
    assert first.counters == now.counters
    assert set(first.policies) == set(now.policies)
    assert first.config.keys() == now.config.keys()
