"""The msgpack checkpoint: the files Ray expects, and nothing lost beside them."""

from __future__ import annotations

import json
from collections import deque
from dataclasses import replace
from enum import Enum
from pathlib import Path

import msgpack_numpy
import numpy as np
import pytest

from rllib_compat.errors import BudgetExceededError, CheckpointError, CorruptCheckpointError
from rllib_compat.formats import pack, unpack
from rllib_compat.formats.layouts import own_msgpack
from rllib_compat.formats.layouts.folder import LayoutMismatch
from rllib_compat.formats.msgpack import write as writer
from rllib_compat.formats.msgpack.state import from_plain, to_plain
from rllib_compat.neutral import (
    Budget,
    Counters,
    GlobalRef,
    LegacyCheckpoint,
    ObservationFilter,
    PolicyState,
    RunningStat,
    Severity,
    Source,
    StandIn,
    spaces,
)
from tests.properties.same import assert_same


def checkpoint(policy_id="default_policy", **policy):
    weights = {"w": np.arange(6, dtype=np.float32).reshape(2, 3)}
    state = PolicyState(
        policy_id,
        **{
            "weights": weights,
            "observation_space": spaces.box(-1, 1, (3,)),
            "action_space": spaces.Discrete(2),
            "policy_class": "ray.rllib.algorithms.ppo.ppo_torch_policy.PPOTorchPolicy",
            **policy,
        },
    )
    return LegacyCheckpoint(
        Source(Path("checkpoint-7"), "1.0", "2.1.0"),
        algorithm="PPO",
        config={"framework": "torch", "lr": 0.1},
        policies={policy_id: state},
        counters=Counters(iteration=7, raw={"num_env_steps_sampled": 700}),
    )


def read_back(folder, value):
    """Reads a written checkpoint; only its path is another one."""
    back = own_msgpack.read(folder, Budget())
    return replace(back, source=replace(back.source, path=value.source.path))


def written(tmp_path, value):
    """Writes and reads back; returns Ray's view of both states, and the findings."""
    findings = writer.write(value, tmp_path)
    assert_same(read_back(tmp_path, value), value)
    # As Ray reads them.
    algorithm = msgpack_numpy.unpackb((tmp_path / "algorithm_state.msgpck").read_bytes())
    (file,) = (tmp_path / "policies").glob("*/policy_state.msgpck")
    return algorithm, msgpack_numpy.unpackb(file.read_bytes()), findings


def test_the_files_and_keys_are_those_of_ray(tmp_path):
    algorithm, policy, findings = written(
        tmp_path, checkpoint(kl_coeff=0.3, exploration={"a": 1}, optimizer=[])
    )
    files = sorted(p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*.*"))
    assert files == [
        "algorithm_state.msgpck",
        "policies/default_policy/policy_state.msgpck",
        "policies/default_policy/rllib_checkpoint.json",
        "rllib_checkpoint.json",
    ]
    assert list(algorithm) == [
        "algorithm_class",
        "config",
        "worker",
        "counters",
        "training_iteration",
        "checkpoint_version",
        "rllib_compat",
    ]
    assert algorithm["algorithm_class"] == "ray.rllib.algorithms.ppo.ppo.PPO"
    assert algorithm["training_iteration"] == 7
    assert list(policy) == [
        "weights",
        "global_timestep",
        "num_grad_updates",
        "policy_spec",
        "connector_configs",
        "_optimizer_variables",
        "_exploration_state",
        "current_kl_coeff",
        "checkpoint_version",
        "rllib_compat",
    ]
    assert policy["policy_spec"]["policy_class"] == "PPOTorchPolicy"
    assert policy["policy_spec"]["config"] == {"framework": "torch", "lr": 0.1}
    assert findings == []


def test_the_metadata_hold_no_path_of_this_machine(tmp_path):
    source = Source(tmp_path / "secret" / "checkpoint-7", "1.0", "2.1.0")
    value = replace(checkpoint(), source=source)
    target = tmp_path / "new"
    target.mkdir()
    writer.write(value, target)
    metadata = json.loads((target / "rllib_checkpoint.json").read_text())
    assert metadata == {
        "type": "Algorithm",
        "checkpoint_version": "1.1",
        "format": "msgpack",
        "state_file": "algorithm_state.msgpck",
        "policy_ids": ["default_policy"],
        "ray_version": "2.1.0",
        "ray_commit": None,
    }
    assert all(b"secret" not in p.read_bytes() for p in target.rglob("*.*"))
    assert own_msgpack.read(target, Budget()).source.path == target


def test_weights_are_stored_once(tmp_path):
    weights = {"w": np.random.default_rng(0).random(100_000)}
    written(tmp_path, checkpoint(weights=weights, extra={"target": weights}))
    (file,) = tmp_path.rglob("policy_state.msgpck")
    # Ray's own form has no sharing: `extra` is a second copy there.
    assert file.stat().st_size < 2 * weights["w"].nbytes + 10_000


@pytest.mark.parametrize(
    "weights",
    [np.arange(9, dtype=np.float32), [np.ones(2), np.zeros((0, 3))]],
    ids=["flat vector", "list without names"],
)
def test_weights_of_older_eras_are_kept_as_they_are(tmp_path, weights):
    _, policy, findings = written(tmp_path, checkpoint(weights=weights))
    np.testing.assert_equal(policy["weights"], weights)
    (finding,) = findings
    assert finding.severity is Severity.WARNING
    assert finding.path == "policies.default_policy.weights"


def test_a_torch_optimizer_is_written_so_that_ray_and_torch_can_read_it(tmp_path):
    import torch

    model = torch.nn.Linear(2, 1)
    adam = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 2)).sum().backward()
    adam.step()
    state = adam.state_dict()
    state["state"] = {
        i: {k: v.numpy().copy() for k, v in slots.items()} for i, slots in state["state"].items()
    }
    _, policy, _ = written(tmp_path, checkpoint(optimizer=[state]))
    (stored,) = policy["_optimizer_variables"]
    assert list(stored["state"]) == stored["param_groups"][0]["params"] == ["0", "1"]
    fresh = torch.optim.Adam(model.parameters())
    stored["state"] = {
        i: {k: torch.tensor(v) for k, v in slots.items()} for i, slots in stored["state"].items()
    }
    fresh.load_state_dict(stored)
    for one, other in zip(
        adam.state_dict()["state"].values(), fresh.state_dict()["state"].values(), strict=True
    ):
        assert all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize(
    "odd",
    [[{"param_groups": 3}], [{"param_groups": [{}]}], [{"param_groups": [3, {"params": 5}]}], [3]],
    ids=repr,
)
def test_an_optimizer_that_is_none_of_torchs_is_kept_as_it_is(tmp_path, odd):
    _, policy, _ = written(tmp_path, checkpoint(optimizer=odd))
    assert policy["_optimizer_variables"] == odd


def test_code_is_named_and_left_out_and_classes_that_ray_looks_up_are_named_in_place(tmp_path):
    function = StandIn(GlobalRef("ray.cloudpickle", "_make_function"), args=("code",))
    config = {
        **checkpoint().config,
        "policy_mapping_fn": function,
        "callbacks_class": GlobalRef("mine", "Callbacks"),
        "observation_fn": GlobalRef("mine", "see"),
    }
    value = replace(checkpoint(), config=config, policy_mapping_fn=function)
    algorithm, policy, findings = written(tmp_path, value)
    config = algorithm["config"]
    assert config["policy_mapping_fn"] == config["observation_fn"] == "__not_serializable__"
    assert config["callbacks"] == "mine.Callbacks"
    assert "callbacks_class" not in config
    assert policy["policy_spec"]["config"] == config
    said = {f.path: f.message for f in findings}
    assert said.keys() == {
        "policy_mapping_fn",
        "config.policy_mapping_fn",
        "config.callbacks",
        "config.observation_fn",
    }
    assert "mine.see" in said["config.observation_fn"]


def test_a_pickle_inside_the_state_does_not_reach_ray(tmp_path):
    configs = {"agent": ["Pipeline", [["StateBufferConnector", b"\x80\x05N."], ["Other", b"x"]]]}
    _, policy, findings = written(tmp_path, checkpoint(extra={"connector_configs": configs}))
    assert policy["connector_configs"]["agent"][1] == [
        ["StateBufferConnector", None],
        ["Other", b"x"],
    ]
    (finding,) = findings
    assert "pickle" in finding.message


def test_what_the_form_has_no_place_for_is_kept_and_told(tmp_path):
    stat = RunningStat(3, np.ones(3), np.ones(3))
    value = checkpoint(
        observation_filter=ObservationFilter("MeanStdFilter", stats=(stat,)),
        learner_weights={"w": np.ones(2)},
        observation_space=None,
    )
    value = replace(value, extra={"train_exec_impl": {(1, 2): {3}}})
    _, _, findings = written(tmp_path, value)
    assert {f.path for f in findings} == {
        "extra.train_exec_impl",
        "policies.default_policy.observation_filter",
        "policies.default_policy.learner_weights",
        "policies.default_policy.observation_space",
    }


def test_values_that_msgpack_has_no_form_for_do_not_stop_the_conversion(tmp_path):
    config = {
        **checkpoint().config,
        "seed": 1 << 100,
        "schedule": {1: "a", (2, 3): "b"},
        "set": {"b", "a"},
        "objects": np.array([None, {1}], object),
        "name": "\udcff",
        "queue": deque([1]),
        "space": spaces.Discrete(2),
    }
    algorithm, _, findings = written(tmp_path, replace(checkpoint(), config=config))
    config = algorithm["config"]
    assert config["seed"] == config["objects"] == config["name"] == "__not_serializable__"
    assert config["schedule"] == {"1": "a", "(2, 3)": "b"}
    assert (config["set"], config["queue"], config["space"]) == (["a", "b"], [1], None)
    assert {f.path for f in findings} == {
        f"config.{key}" for key in ("seed", "schedule", "objects", "name", "space")
    }


@pytest.mark.parametrize("policy_id", ["../../up", "a/b", "..", ".", "", "C:x", "a\x00", "dot."])
def test_a_policy_id_can_not_lead_out_of_the_checkpoint(tmp_path, policy_id):
    with pytest.raises(CheckpointError, match="folder"):
        writer.write(checkpoint(policy_id), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_of_ray_itself_is_left_to_the_layout_reader(tmp_path):
    (tmp_path / "algorithm_state.msgpck").write_bytes(pack({"config": {}}))
    with pytest.raises(LayoutMismatch, match="written by Ray"):
        own_msgpack.read(tmp_path, Budget())


@pytest.mark.parametrize(
    "own",
    [
        3,
        {"$": "PolicyState", "v": {}},
        {"$": "LegacyCheckpoint", "v": {"colour": 1}},
        {"$": "Severity", "v": "loud"},
        {"$": "at", "v": ["no", "where"]},
        {"$": "again", "v": 3},
        {"$": "objects", "shape": [1 << 40], "v": []},
        {"$": "os.system", "v": []},
        {"$": "int", "v": 3},
        {"$": "map", "v": [[[], 1]]},
    ],
    ids=repr,
)
def test_damage_to_our_own_part_is_told(tmp_path, own):
    state = {"worker": {"policy_ids": []}, "rllib_compat": own}
    (tmp_path / "algorithm_state.msgpck").write_bytes(pack(state))
    with pytest.raises(CorruptCheckpointError, match=r"damaged|has no"):
        own_msgpack.read(tmp_path, Budget())


def test_an_array_in_the_place_of_a_policys_id_is_told(tmp_path):
    odd = replace(checkpoint().policies["default_policy"], policy_id=np.array([1, 2]))
    writer.write(checkpoint(), tmp_path)
    file = tmp_path / "policies" / "default_policy" / "policy_state.msgpck"
    file.write_bytes(pack({"rllib_compat": to_plain(odd)}))
    with pytest.raises(CorruptCheckpointError, match="another folder"):
        own_msgpack.read(tmp_path, Budget())


@pytest.mark.parametrize("policy_ids", [["../up"], [3], ["gone"]])
def test_reading_back_stays_below_the_folder(tmp_path, policy_ids):
    writer.write(checkpoint(), tmp_path)
    file = tmp_path / "algorithm_state.msgpck"
    file.write_bytes(pack(unpack(file) | {"worker": {"policy_ids": policy_ids}}))
    with pytest.raises(CorruptCheckpointError):
        own_msgpack.read(tmp_path, Budget())


def test_a_class_that_refers_to_itself_survives():
    made = StandIn(GlobalRef("ray.cloudpickle", "_make_skeleton_class"), args=("Mine",))
    cell = StandIn(GlobalRef("ray.cloudpickle", "_make_cell"), args=(made,))
    made.state = {"methods": [cell], "again": cell}
    back = from_plain(unpack(pack(to_plain({"callbacks": made}))))["callbacks"]
    assert back.state["methods"][0] is back.state["again"]
    assert back.state["again"].args[0] is back


def test_lists_that_share_each_other_a_billion_times_stay_small():
    value = []
    for _ in range(60):
        value = [value, value]
    assert len(pack(to_plain(value))) < 5_000
    with pytest.raises(BudgetExceededError):
        writer._RayForm(Budget()).convert(value, "config")


class Level(Enum):
    EASY = 1


@pytest.mark.parametrize(
    ("odd", "kept"),
    [
        (Level.EASY, StandIn(GlobalRef(__name__, "Level"), args=("<Level.EASY: 1>",))),
        (Level, GlobalRef(__name__, "Level")),
        (len, GlobalRef("builtins", "len")),
        (slice("a", 2), StandIn(GlobalRef("builtins", "slice"), args=("slice('a', 2, None)",))),
    ],
    ids=repr,
)
def test_what_has_no_form_is_kept_as_an_inert_record_and_never_costs_the_weights(
    tmp_path, odd, kept
):
    whole = checkpoint()
    whole = replace(whole, config={**whole.config, "env_config": {"odd": odd}})
    findings = writer.write(whole, tmp_path)
    assert [f.path for f in findings if f.path == "config.env_config.odd"]
    back = read_back(tmp_path, whole)
    assert_same(back.config["env_config"]["odd"], kept)
    assert_same(back.policies, whole.policies)


def test_shared_tuples_are_bounded():
    value = ()
    for _ in range(60):
        value = (value, value)
    with pytest.raises(BudgetExceededError):
        to_plain(value, budget=Budget(outputs=10_000))


def test_nesting_without_end_is_told_and_does_not_crash():
    value = []
    for _ in range(100_000):
        value = [value]
    with pytest.raises(BudgetExceededError):
        to_plain(value)
    with pytest.raises(BudgetExceededError):
        writer._RayForm(Budget()).convert(value, "config")
