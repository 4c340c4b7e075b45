"""Reading every layout, and what happens where a checkpoint is not as it should be."""

import json
import pickle
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import rllib_compat as compat
from rllib_compat.config import Origin
from rllib_compat.errors import (
    CorruptCheckpointError,
    MissingInformationError,
    UnknownLayoutError,
)
from rllib_compat.formats import Folder, layouts, read_checkpoint
from tests.legacy.cases import all_cases, find
from tests.trees import digest_tree

CASES = all_cases()
LAYOUT_OF = {
    "1.0": ("2.1.0", "2.3.1"),
    "1.1": ("2.8.1", "2.10.0", "2.35.0"),
    "1.2": ("2.7.2", "2.10.0"),
    "2.0": ("2.35.0", "2.40.0"),
}


def one(ray, **wanted):
    return find(ray=ray, algorithm="PPO", **wanted)[0]


@pytest.fixture
def old(tmp_path):
    """A copy of a v0.1 checkpoint, to be damaged."""
    case = next(c for c in find(ray="0.8.5") if c.variant == "worker1")
    return shutil.copytree(case.path, tmp_path / "trial") / "checkpoint_2"


@pytest.fixture
def newer(tmp_path):
    """A copy of a 1.1 checkpoint, to be damaged."""
    case = next(c for c in find(ray="2.10.0", algorithm="PPO") if c.stack == "old")
    return shutil.copytree(case.checkpoint, tmp_path / "checkpoint")


@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_checkpoint_of_the_museum_is_read_with_its_policies_and_its_ray(case):
    checkpoint = read_checkpoint(case.checkpoint)
    expected = LAYOUT_OF.get(checkpoint.source.layout)
    assert expected is None or case.ray in expected
    assert case.version < (2, 1) or expected
    assert {"default" if p == "default_policy" else p for p in checkpoint.policies} == {
        "default" if p == "default_policy" else p for p in case.policies
    }
    if checkpoint.source.ray_version is not None:
        assert case.ray.startswith(checkpoint.source.ray_version)
    assert checkpoint.counters.iteration == case.about["iteration"]


@pytest.mark.parametrize("case", [c for c in CASES if c.msgpack_checkpoint], ids=str)
def test_what_ray_wrote_as_msgpack_holds_the_same_weights_as_its_pickle(case):
    pickled = read_checkpoint(case.checkpoint)
    packed = read_checkpoint(case.msgpack_checkpoint)
    assert packed.source.layout == "1.1 msgpack"
    for policy_id, policy in pickled.policies.items():
        for name, array in policy.weights.items():
            np.testing.assert_array_equal(packed.policies[policy_id].weights[name], array)


def test_reading_touches_nothing(old):
    before = digest_tree(old.parent)
    read_checkpoint(old)
    assert digest_tree(old.parent) == before


@pytest.mark.parametrize("depth", ["file", "folder", "trial"])
def test_a_file_its_folder_and_the_trial_above_are_the_same_checkpoint(old, depth):
    path = {"file": old / "checkpoint-2", "folder": old, "trial": old.parent}[depth]
    checkpoint = read_checkpoint(path)
    assert checkpoint.counters.iteration == 2
    assert checkpoint.config["num_sgd_iter"] == 3


def test_of_several_checkpoints_the_last_is_taken_and_the_report_says_so(old):
    shutil.copytree(old, old.parent / "checkpoint_10")
    (old.parent / "checkpoint_10" / "checkpoint-2").rename(
        old.parent / "checkpoint_10" / "checkpoint-10"
    )
    checkpoint = read_checkpoint(old.parent)
    assert [f.path for f in checkpoint.findings if f.rule == "several-checkpoints"] == [
        "checkpoint_10/checkpoint-10"
    ]


def test_a_renamed_file_is_known_by_its_content(old):
    (old / "checkpoint-2").rename(old / "best_model")
    assert read_checkpoint(old / "best_model").policies
    assert read_checkpoint(old).policies


@pytest.mark.parametrize(
    "damage", [b"", b"\x80\x04", b"no pickle at all", b"\x80\x04cos\nsystem\n"]
)
def test_a_damaged_side_file_is_told_and_the_weights_come_out_all_the_same(old, damage):
    (old / "checkpoint-2.tune_metadata").write_bytes(damage)
    checkpoint = read_checkpoint(old)
    assert checkpoint.policies["default_policy"].weights
    assert [f.path for f in checkpoint.findings if f.rule == "side-file"] == [
        "checkpoint-2.tune_metadata"
    ]


def test_params_json_serves_where_params_pkl_is_damaged(old):
    (old.parent / "params.pkl").write_bytes(b"\x80\x04broken")
    assert read_checkpoint(old).config["num_sgd_iter"] == 3


def test_a_config_among_logs_beside_the_checkpoint_is_taken_with_a_warning(old):
    logs = old.parent / "logs"
    logs.mkdir()
    for name in ("params.pkl", "params.json"):
        (old.parent / name).rename(logs / name)
    checkpoint = read_checkpoint(old)
    assert checkpoint.config["num_sgd_iter"] == 3
    assert "beside" in next(f.message for f in checkpoint.findings if f.rule == "params")


@pytest.mark.parametrize("folders", [("trial_1",), ("logs_1", "logs_2")], ids=len)
def test_the_config_of_what_may_be_another_trial_is_named_and_never_used(old, folders):
    for folder in folders:
        (old.parent / folder).mkdir()
        if folder.startswith("trial"):
            (old.parent / folder / "checkpoint_7").mkdir()
        shutil.copy(old.parent / "params.json", old.parent / folder)
    for name in ("params.pkl", "params.json"):
        (old.parent / name).unlink()
    with pytest.raises(MissingInformationError, match="No config was found") as caught:
        compat.load_policy(old, algorithm="PPO")
    command = re.search(r"--config (\S+) if it is the checkpoint's", caught.value.fix)
    config = json.loads(Path(command[1]).read_text())
    compat.load_policy(old, algorithm="PPO", config=config)


class Settings(dict):
    """What people keep their configs in, under whatever name."""


class Layers(list):
    """A list of a class of its own."""


def test_what_is_a_dict_or_list_by_inheritance_keeps_its_content_in_a_config(old):
    params = old.parent / "params.pkl"
    config = json.loads((old.parent / "params.json").read_text())
    config["model"] = Settings(config["model"], fcnet_hiddens=Layers([24, 16]))
    params.write_bytes(pickle.dumps(Settings(config)))
    checkpoint = read_checkpoint(old)
    assert checkpoint.config == config
    assert type(checkpoint.config["model"]["fcnet_hiddens"]) is list
    rows = {f.message for f in checkpoint.findings if f.rule == "config.subclass"}
    assert rows == {
        f"{__name__}.Settings, read as a dict",
        f"{__name__}.Layers, read as a list",
    }


@pytest.mark.parametrize(
    "made_up", ["checkpoint_2/checkpoint-2", "checkpoint_000002/checkpoint-2", "checkpoint_2"]
)
def test_a_path_that_old_code_makes_up_is_the_folder_that_is_there_now(newer, made_up):
    folder = newer.rename(newer.with_name("checkpoint_000002"))
    assert read_checkpoint(folder.parent / made_up).source.path == folder
    with pytest.raises(UnknownLayoutError, match=r"checkpoint_0*3"):
        read_checkpoint(folder.parent / made_up.replace("2", "3"))


@pytest.mark.parametrize(
    "stored",
    ["/etc/passwd", "..\\..\\secret.pkl", "C:\\old\\algorithm_state.pkl", "checkpoints/a/b.pkl"],
)
def test_a_path_that_is_stored_in_a_file_is_never_followed(newer, stored):
    file = newer / "rllib_checkpoint.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"state_file": stored}))
    checkpoint = read_checkpoint(newer)
    assert checkpoint.policies
    assert any(
        f.rule == "stored-path" and stored in f.message.replace("\\\\", "\\")
        for f in checkpoint.findings
    )


@pytest.mark.parametrize("content", ["", "{", "[]", '"text"', "{" * 100_000])
def test_a_damaged_rllib_checkpoint_json_does_not_stop_the_weights(newer, content):
    (newer / "rllib_checkpoint.json").write_text(content)
    assert read_checkpoint(newer).policies["default_policy"].weights


def test_a_link_out_of_the_checkpoint_is_refused(newer, tmp_path):
    secret = tmp_path / "secret.pkl"
    secret.write_bytes(pickle.dumps({"weights": {}}))
    state = newer / "policies" / "default_policy" / "policy_state.pkl"
    state.unlink()
    state.symlink_to(secret)
    with pytest.raises(CorruptCheckpointError, match="points outside"):
        read_checkpoint(newer)


POLICY_FOLDERS = [
    folder
    for case in CASES
    for folder in sorted(case.checkpoint.glob("policies/*"))
    if not folder.name.startswith(".")
]


def test_a_policy_in_a_folder_of_any_name_has_its_own_id_and_optimizer(tmp_path):
    assert len(POLICY_FOLDERS) > 30
    for number, folder in enumerate(POLICY_FOLDERS):
        exported = shutil.copytree(folder, tmp_path / f"export{number}")
        (within,) = read_checkpoint(folder).policies.values()
        (policy,) = read_checkpoint(exported).policies.values()
        knows = "__policy_id" in within.config or any("/" in name for name in within.weights)
        assert within.policy_id == folder.name
        assert policy.policy_id == (folder.name if knows else "default_policy")
        assert (policy.optimizer is None) is (within.optimizer is None)


def test_policies_in_a_folder_of_any_name_have_different_ids(tmp_path):
    (whole,) = find(ray="2.3.1", variant="threepolicies")
    policies = whole.checkpoint / "policies"
    moved = shutil.copytree(policies, tmp_path / "exports")
    assert read_checkpoint(moved).policies.keys() == read_checkpoint(policies).policies.keys()


def test_exports_of_one_policy_have_the_names_of_their_folders(tmp_path):
    folder = next(f for f in POLICY_FOLDERS if "2.7.2" in f.parts)
    for name in ("early", "late"):
        shutil.copytree(folder, tmp_path / name)
    assert set(read_checkpoint(tmp_path).policies) == {"early", "late"}


def test_adam_of_tensorflow_goes_on_from_an_exported_policy(tmp_path):
    (case,) = [c for c in find(ray="2.3.1") if c.path.name == "ppo-tf-hiddens24x16"]
    folder = case.checkpoint / "policies" / "default_policy"
    exported = shutil.copytree(folder, tmp_path / "exported")
    report = compat.convert(exported, tmp_path / "new", algorithm="PPO", dry_run=True).report
    (moments,) = [row for row in report if row.path.endswith(".optimizer")]
    assert "Adam" in moments.message


def test_missing_policies_are_an_error_that_says_to_copy_them(newer):
    shutil.rmtree(newer / "policies")
    with pytest.raises(CorruptCheckpointError, match="no policies") as caught:
        read_checkpoint(newer)
    assert "policies" in caught.value.fix


def test_a_policys_folder_alone_is_a_checkpoint(newer):
    checkpoint = read_checkpoint(newer / "policies" / "default_policy")
    assert checkpoint.source.layout == "1.1 policy"
    assert list(checkpoint.policies) == ["default_policy"]
    assert checkpoint.config["model"]["fcnet_hiddens"]


@pytest.mark.parametrize("ray", ["2.1.0", "2.3.1", "2.10.0", "2.35.0"])
def test_a_policys_folder_alone_has_its_filter_or_says_that_it_is_elsewhere(ray):
    case = next(case for case in find(ray=ray, algorithm="PPO") if "meanstd" in case.variant)
    (whole,) = read_checkpoint(case.checkpoint).policies.values()
    alone = read_checkpoint(case.checkpoint / "policies" / "default_policy")
    (policy,) = alone.policies.values()
    missing = [finding.path for finding in alone.findings if finding.rule == "policy.filter"]
    if ray == "2.1.0":  # the statistics came into this file with Ray 2.3
        assert policy.observation_filter is None
        assert missing == ["policies.default_policy.observation_filter"]
    else:
        assert repr(policy.observation_filter) == repr(whole.observation_filter)
        assert not missing


class Scale:
    """Stands for a connector of a user's own."""


@pytest.mark.parametrize("own", ["user's", "Ray's"])
def test_connectors_that_change_observations_are_told_and_their_states_kept(tmp_path, own):
    case = find(ray="2.40.0", algorithm="PPO", variant="small-relu")[0]
    tree = shutil.copytree(case.checkpoint, tmp_path / "tree")
    place = tree / "env_runner/env_to_module_connector/Scale"
    place.mkdir()
    made = pickle.dumps({"class": Scale, "ctor_args_and_kwargs": ((), {})}, protocol=0)
    if own == "Ray's":
        theirs = b"ray.rllib.connectors.env_to_module.frame_stacking\nFrameStackingEnvToModule"
        made = made.replace(f"{__name__}\nScale".encode(), theirs)
    (place / "class_and_ctor_args.pkl").write_bytes(made)
    (place / "state.pkl").write_bytes(pickle.dumps({"factor": 0.5}))
    checkpoint = read_checkpoint(tree)
    assert checkpoint.extra["connector Scale"] == {"factor": 0.5}
    (told,) = (finding for finding in checkpoint.findings if finding.rule == "connector")
    assert ("FrameStackingEnvToModule" if own == "Ray's" else "Scale") in told.message
    assert told in compat.load_policy(tree).findings


@pytest.mark.parametrize("cut", [0, 1, 100, -1])
def test_a_truncated_checkpoint_is_an_error_and_not_half_a_policy(old, cut):
    file = old / "checkpoint-2"
    file.write_bytes(file.read_bytes()[:cut])
    with pytest.raises((CorruptCheckpointError, UnknownLayoutError)):
        read_checkpoint(file)


def test_a_refused_path_says_what_each_layout_missed(tmp_path):
    (tmp_path / "notes.txt").write_text("no checkpoint")
    with pytest.raises(UnknownLayoutError) as caught:
        read_checkpoint(tmp_path)
    for layout in layouts.LAYOUTS:
        assert f"{layout.name}: " in str(caught.value)


def test_a_path_that_is_not_there_says_just_that(tmp_path):
    with pytest.raises(UnknownLayoutError, match="no such file"):
        read_checkpoint(tmp_path / "nothing")


def test_any_other_pickle_is_no_checkpoint(tmp_path):
    (tmp_path / "checkpoint-1").write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(UnknownLayoutError, match="none of the keys"):
        read_checkpoint(tmp_path)


def test_a_worker_without_policies_is_damaged(tmp_path):
    file = tmp_path / "checkpoint-1"
    file.write_bytes(pickle.dumps({"worker": pickle.dumps({"filters": {}})}))
    with pytest.raises(CorruptCheckpointError, match="no policies"):
        read_checkpoint(file)


def test_every_file_that_was_read_has_its_digest_in_the_source(newer):
    digests = read_checkpoint(newer).source.digests
    assert digests.keys() >= {
        "algorithm_state.pkl",
        "rllib_checkpoint.json",
        "policies/default_policy/policy_state.pkl",
    }
    tree = digest_tree(newer)
    assert all(tree[name] == digest for name, digest in digests.items())


def test_the_learner_of_a_1_2_checkpoint_has_the_same_weights_as_its_policy():
    case = next(c for c in find(ray="2.10.0") if c.stack == "learner")
    (policy,) = read_checkpoint(case.checkpoint).policies.values()
    assert policy.learner_weights
    for name, array in policy.weights.items():
        np.testing.assert_array_equal(policy.learner_weights[name], array)


def test_a_filter_filters_as_the_old_ray_did():
    case = next(c for c in find(ray="0.8.5") if c.variant == "worker1")
    (policy,) = read_checkpoint(case.checkpoint).policies.values()
    expected = case.expected("default_policy")
    filtered = policy.observation_filter(expected.observations[""])
    np.testing.assert_allclose(filtered, expected.inputs, atol=1e-6)


def test_no_file_is_opened_outside_of_the_folder(tmp_path):
    folder = Folder(tmp_path)
    for name in ("../up", "/etc/passwd"):
        with pytest.raises(CorruptCheckpointError):
            folder.path(name)


@pytest.mark.parametrize("ray", ["2.1.0", "2.3.1"])
def test_the_config_of_a_policys_folder_has_no_key_that_no_ray_had(ray):
    folder = one(ray).checkpoint / "policies/default_policy"
    config = read_checkpoint(folder).config
    assert "worker_index" in config
    compat.translate(config, algorithm="PPO", origin=Origin.FILE, on_unknown="error")
