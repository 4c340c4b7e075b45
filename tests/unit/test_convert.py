"""Conversion as far as it needs no Ray: completion, dry runs, msgpack, proof, refusals."""

import errno
import logging
import os
import pickle
import shutil
import subprocess
import sys
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rllib_compat import Given, convert, inspect, load, verify
from rllib_compat.conversion import Form, compare_outputs, describe_next_step, prepare
from rllib_compat.conversion import complete as resolve
from rllib_compat.conversion import config as config_module
from rllib_compat.conversion.compare import (
    TIMES,
    WEIGHTS,
    compare_networks,
    require_equal,
    sample_inputs,
)
from rllib_compat.conversion.config import fit_resources
from rllib_compat.conversion.convert import result_of
from rllib_compat.conversion.identify import identify_networks, require_algorithm
from rllib_compat.errors import (
    CheckpointError,
    FileSystemError,
    MissingInformationError,
    NotYetError,
    TargetExistsError,
    VerificationError,
)
from rllib_compat.formats import layouts
from rllib_compat.networks import Graph
from rllib_compat.networks.families.q_head import exploring
from rllib_compat.neutral import Finding, GlobalRef, Severity, Verdict
from rllib_compat.neutral.check import check
from rllib_compat.neutral.report import grouped
from rllib_compat.neutral.spaces import box, parse_repr
from rllib_compat.ray_versions import configs, startup
from tests.legacy.cases import all_cases, case_of, find
from tests.legacy.networks import given_if_asked
from tests.trees import digest_tree

FULLY_CONNECTED = [
    next(c for c in find(ray="0.8.5") if c.variant == "worker1"),
    next(c for c in find(ray="0.6.6") if c.variant == "cont-meanstd"),
    next(c for c in find(ray="1.13.0", framework="tf2") if c.variant == "freelogstd"),
    next(c for c in find(ray="2.10.0") if c.stack == "learner"),
    next(c for c in find(ray="2.40.0") if c.algorithm == "PPO"),
]


#: The files of each step; `convert.py` calls the steps, `given.py` has what the caller gave.
STEPS = {
    "complete": "complete policies",
    "identify": "identify",
    "plan": "plan config sources",
    "prove": "prove compare recordings",
}


def steps_of(run):
    """The steps of a conversion as they are entered, by what Python calls."""
    step_of_file = {f"{file}.py": step for step, files in STEPS.items() for file in files.split()}
    entered = []

    def note(frame, event, _):
        folder, file = os.path.split(frame.f_code.co_filename)
        step = step_of_file.get(file) if folder.endswith("rllib_compat/conversion") else None
        if event == "call" and step is not None and entered[-1:] != [step]:
            entered.append(step)

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return entered


@pytest.mark.parametrize("case", FULLY_CONNECTED[:2], ids=str)
def test_no_step_is_entered_twice(case, tmp_path):
    given = given_if_asked(case)
    plain = ["complete", "identify", "plan"]

    def to_msgpack():
        convert(case.checkpoint, tmp_path / "new", to="msgpack", given=given, inputs=20)

    configs.todays_config("PPO")  # what it imports is imported without the profiler
    assert steps_of(to_msgpack) == [*plain, "prove"]
    dry = steps_of(lambda: convert(case.checkpoint, tmp_path / "x", given=given, dry_run=True))
    assert dry == [*plain, "prove"]


def weights_of(checkpoint):
    """All weights as a flat dict, whatever form they were stored in."""
    flat = {}
    for policy_id, policy in checkpoint.policies.items():
        weights = policy.weights
        if isinstance(weights, dict):
            parts = weights.items()
        else:
            parts = enumerate(weights if isinstance(weights, list) else [weights])
        flat |= {(policy_id, str(name)): array for name, array in parts}
    return flat


@pytest.mark.parametrize("case", all_cases(), ids=str)
def test_msgpack_keeps_every_weight_of_every_network_and_algorithm(case, tmp_path):
    old = layouts.read(case.checkpoint)
    try:
        convert(case.checkpoint, tmp_path / "new", to="msgpack", inputs=10)
    except CheckpointError as error:
        pytest.fail(f"{case}: {error}")
    new = weights_of(layouts.read(tmp_path / "new"))
    before = weights_of(old)
    names = {("default_policy" if p == "default" else p, n): a for (p, n), a in before.items()}
    renamed = "default_policy" in {p for p, _ in new}
    for key, array in (names if renamed else before).items():
        np.testing.assert_array_equal(new[key], array)


@pytest.mark.parametrize("case", FULLY_CONNECTED, ids=str)
def test_msgpack_is_proven_by_the_networks_outputs(case, tmp_path):
    done = convert(case.checkpoint, tmp_path / "new", to="msgpack", inputs=50)
    assert done.largest_difference == 0
    outputs = [d for d in done.differences if d.output != WEIGHTS]
    assert {d.output for d in outputs} == {"action_dist_inputs", "vf_preds"}
    assert all(d.inputs == 50 for d in outputs)
    found = verify(case.checkpoint, tmp_path / "new", inputs=20)
    assert found.differences
    assert found.equal


def test_a_dry_run_writes_nothing_and_tells_the_plan(tmp_path):
    case = FULLY_CONNECTED[0]
    done = convert(case.checkpoint, tmp_path / "new", to="msgpack", dry_run=True)
    assert done.target is None
    assert list(tmp_path.iterdir()) == []
    assert {f.rule for f in done.report} >= {"weights", "optimizer"}


def test_what_is_derived_for_the_target_is_in_the_report(tmp_path):
    case = next(c for c in find(ray="1.13.0", framework="torch") if "league" in c.variant)
    report = convert(case.checkpoint, tmp_path / "new", dry_run=True).report
    assert {f.rule for f in report} >= {"policy-mapping", "environment", "weights", "optimizer"}
    assert any(f.path.startswith("$.") for f in report)


def test_the_source_stays_byte_identical(tmp_path):
    source = shutil.copytree(FULLY_CONNECTED[0].path, tmp_path / "old")
    before = digest_tree(source)
    convert(source, tmp_path / "new", to="msgpack", inputs=5)
    assert digest_tree(source) == before


def test_a_target_that_is_there_is_kept_unless_overwrite_is_given(tmp_path):
    case, target = FULLY_CONNECTED[0], tmp_path / "new"
    target.mkdir()
    (target / "mine").write_text("precious")
    with pytest.raises(TargetExistsError):
        convert(case.checkpoint, target, to="msgpack", inputs=5)
    assert (target / "mine").read_text() == "precious"
    with pytest.raises(TargetExistsError, match="'mine', and no rllib_compat_manifest"):
        convert(case.checkpoint, target, to="msgpack", inputs=5, overwrite=True)
    assert (target / "mine").read_text() == "precious"
    (target / "mine").unlink()
    for _ in range(2):
        convert(case.checkpoint, target, to="msgpack", inputs=5, overwrite=True)


def test_the_target_may_not_lie_in_the_source(tmp_path):
    source = shutil.copytree(FULLY_CONNECTED[0].path, tmp_path / "old")
    with pytest.raises(CheckpointError):
        convert(source, source / "new", to="msgpack", inputs=5)


def test_a_failed_proof_leaves_nothing_behind(tmp_path, monkeypatch):
    read = layouts.read

    def read_wrong(path, budget):
        checkpoint = read(path, budget)
        if not Path(path).is_relative_to(tmp_path):
            return checkpoint
        (policy,) = checkpoint.policies.values()
        wrong = {name: array + 1 for name, array in policy.weights.items()}
        return checkpoint.with_policies([replace(policy, weights=wrong)])

    monkeypatch.setattr(layouts, "read", read_wrong)
    with pytest.raises(VerificationError, match="differ"):
        convert(FULLY_CONNECTED[0].checkpoint, tmp_path / "new", to="msgpack")
    assert list(tmp_path.iterdir()) == []


def outputs(logits, values=None):
    found = {"action_dist_inputs": logits, "vf_preds": values}
    return {name: array for name, array in found.items() if array is not None}


def test_an_output_that_the_new_module_lacks_is_an_error():
    with pytest.raises(VerificationError, match="no output vf_preds"):
        compare_outputs("p", outputs(np.zeros((3, 2)), np.zeros(3)), outputs(np.zeros((3, 2))))


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e-3])
def test_a_wrong_number_is_never_within_the_tolerance(bad):
    old = outputs(np.zeros((3, 2)), np.zeros(3))
    new = outputs(np.full((3, 2), [0.0, bad]), np.zeros(3))
    rows = compare_outputs("p", old, new)
    assert [row.ok for row in rows] == [False, True]
    with pytest.raises(VerificationError, match="p"):
        require_equal(rows)


def test_a_policy_that_the_new_checkpoint_lacks_is_an_error():
    with pytest.raises(VerificationError, match="no module for this policy"):
        compare_networks({"p": None}, {}, {"p": {}})


@pytest.mark.parametrize(("times", "ok"), [(TIMES * 0.99, True), (TIMES * 1.01, False)])
def test_a_number_may_be_off_by_ten_times_the_networks_own_error_and_no_more(times, ok):
    old, error = np.array([1000.0, 0.0]), np.array([1e-3, 1e-7])
    for i in range(2):
        new = old.copy()
        new[i] += times * error[i]
        (row,) = compare_outputs("p", {"vf_preds": old}, {"vf_preds": new}, {"vf_preds": error})
        assert row.ok is ok
        assert row.times == pytest.approx(times)
        assert row.own_error == 1e-3


def test_where_float32_overflows_the_new_network_may_and_nothing_else():
    old, error = {"vf_preds": np.array([1e39, 1.0])}, {"vf_preds": np.array([np.inf, 1e-7])}
    (same,) = compare_outputs("p", old, {"vf_preds": np.array([np.inf, 1.0])}, error)
    (lost,) = compare_outputs("p", old, {"vf_preds": np.array([5.0, 1.0])}, error)
    (spread,) = compare_outputs("p", old, {"vf_preds": np.array([np.inf, np.inf])}, error)
    assert (same.ok, lost.ok, spread.ok) == (True, False, False)


def test_another_shape_is_an_error_and_not_broadcast():
    with pytest.raises(VerificationError, match="shape"):
        compare_outputs("p", outputs(np.zeros((3, 2))), outputs(np.zeros((3, 1))))


def test_random_inputs_stay_within_bounds_and_are_the_same_each_time():
    space = box([-1.0, -np.inf, 0.0], [1.0, np.inf, 5.0], (3,))
    graph = Graph({"obs": (3,)}, (), {})
    inputs = sample_inputs(graph, space, 500)["obs"]
    assert inputs[:, 0].min() >= -1
    assert inputs[:, 0].max() <= 1
    assert inputs[:, 1].min() < -1.5
    assert inputs[:, 2].max() > 3
    np.testing.assert_array_equal(inputs, sample_inputs(graph, space, 500)["obs"])


def test_an_algorithm_that_is_not_converted_yet_is_named(tmp_path):
    case = next(c for c in find(ray="0.8.5") if c.variant == "worker1")
    with pytest.raises(NotYetError, match="Not supported yet: the algorithm SlateQ"):
        convert(case.checkpoint, tmp_path / "new", given=Given(algorithm="SlateQ"))
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def bare(tmp_path):
    """A v0.1 checkpoint without any params."""
    case = next(c for c in find(ray="0.8.5") if c.variant == "worker1")
    shutil.copytree(case.path / "checkpoint_2", tmp_path / "a" / "b" / "c" / "bare")
    return tmp_path / "a" / "b" / "c" / "bare"


def test_without_a_config_the_activation_is_asked_for_and_not_guessed(bare, tmp_path):
    with pytest.raises(MissingInformationError, match="activation") as caught:
        convert(bare, tmp_path / "new", given=Given(algorithm="PPO"))
    assert "--config" in caught.value.fix


def test_without_any_sign_the_algorithm_is_asked_for(bare, tmp_path):
    with pytest.raises(MissingInformationError, match="algorithm") as caught:
        convert(bare, tmp_path / "new")
    assert "--algorithm" in caught.value.fix


def test_without_an_environment_the_action_space_is_asked_for(bare, tmp_path):
    given = Given(algorithm="PPO", config={"model": {"fcnet_activation": "relu"}})
    with pytest.raises(MissingInformationError, match="action space") as caught:
        convert(bare, tmp_path / "new", given=given)
    assert "--action-space" in caught.value.fix


def test_what_the_caller_gives_comes_before_what_is_found(bare):
    checkpoint = layouts.read(bare)
    space = parse_repr("Box(-9.0, 9.0, (4,), float32)")
    given = Given(
        algorithm="PPOTrainer",
        config={"lr": 1.0},
        env="CartPole-v1",
        observation_spaces={None: space},
    )
    checkpoint = resolve.complete(checkpoint, given)
    assert checkpoint.algorithm == "PPO"
    assert checkpoint.config == {"lr": 1.0, "env": "CartPole-v1"}
    policy = checkpoint.policies["default_policy"]
    assert policy.observation_space is space
    assert policy.action_space == parse_repr("Discrete(2)")


def test_a_trial_folders_name_tells_algorithm_and_environment(bare):
    trial = bare.parent / "PPO_CartPole-v0_2020-05-05_12-00-00abc"
    trial.mkdir()
    bare.rename(trial / "checkpoint_2")
    checkpoint = layouts.read(trial)
    checkpoint = resolve.complete(checkpoint, Given())
    assert checkpoint.algorithm == "PPO"
    assert checkpoint.config["env"] == "CartPole-v0"


def algorithm_of(tmp_path, name, folder):
    """What is found for a museum case in a folder of a name, without being told."""
    case = case_of(name)
    shutil.copytree(case.path, tmp_path / folder)
    place = tmp_path / folder / case.checkpoint.relative_to(case.path)
    return resolve.complete(layouts.read(place), Given())


@pytest.mark.parametrize(
    ("name", "folder", "found"),
    [
        ("1.0.1/appo-torch-default", "APPO_CartPole-v0_0_2020", "APPO"),
        ("1.0.1/appo-torch-default", "IMPALA_CartPole-v0_0_2020", "IMPALA"),
        ("0.8.5/apex-torch-small", "APEX_CartPole-v0_0_2020", "APEX"),
        ("0.8.5/apex_ddpg-tf-small", "APEX_DDPG_Pendulum-v0_0_2020", "APEX_DDPG"),
        ("0.8.5/ddpg-torch-asym2", "TD3", "TD3"),
        ("0.8.5/ddpg-torch-asym2", "TD3 final", "TD3"),
        ("0.8.5/ddpg-torch-asym2", "TD3-seed_2", "TD3"),
        ("1.13.0/ppo-torch-league20", "A2C_x", "PPO"),  # its policies say another class
    ],
)
def test_the_trials_folder_is_asked_before_keys(tmp_path, name, folder, found):
    checkpoint = algorithm_of(tmp_path, name, folder)
    assert checkpoint.algorithm == found
    assert not any(
        f.path == "algorithm" and f.severity is not Severity.INFO for f in checkpoint.findings
    )


def test_an_algorithm_that_only_keys_tell_is_a_warning(tmp_path):
    checkpoint = algorithm_of(tmp_path, "0.8.5/ppo-tf-fc32relu-share", "run1")
    assert checkpoint.algorithm == "PPO"
    (row,) = [f for f in checkpoint.findings if f.path == "algorithm"]
    assert row.severity is Severity.WARNING


@pytest.mark.parametrize(
    ("name", "found"), [("0.8.5/sac-tf-small", "SAC"), ("0.7.6/marwil-tf-json", "MARWIL")]
)
def test_algorithms_that_came_later_are_no_candidates(tmp_path, name, found):
    # CQL came with Ray 1.2; BC with Ray 1.0, and was another before 0.6.
    assert algorithm_of(tmp_path, name, "run1").algorithm == found


@pytest.mark.parametrize(
    ("name", "candidates"),
    [("2.0.1/td3-torch-default", "DDPG or TD3"), ("2.0.1/bc-torch-default", "MARWIL or BC")],
)
def test_a_policy_class_that_two_algorithms_had_is_no_answer(tmp_path, name, candidates):
    checkpoint = algorithm_of(tmp_path, name, "run1")
    with pytest.raises(MissingInformationError, match=candidates):
        require_algorithm(checkpoint)
    named = algorithm_of(tmp_path, name, candidates.rpartition(" ")[2])
    assert named.algorithm == candidates.rpartition(" ")[2]


def test_arrays_of_another_algorithm_than_the_folders_are_told_whose_they_are(tmp_path):
    checkpoint = algorithm_of(tmp_path, "0.8.5/dqn-tf-nodueling", "PPO_CartPole-v0_0_2020")
    assert checkpoint.algorithm == "PPO"
    with pytest.raises(CheckpointError, match='algorithm="DQN", if it was'):
        identify_networks(checkpoint, Given())


def test_the_only_policy_of_ray_0_5_gets_todays_name():
    checkpoint = layouts.read(find(ray="0.5.3", algorithm="PPO")[0].checkpoint)
    checkpoint = resolve.complete(checkpoint, Given(algorithm="PPO"))
    assert list(checkpoint.policies) == ["default_policy"]
    assert any(f.rule == "policy-id" for f in checkpoint.findings)


def test_inspect_and_msgpack_import_neither_ray_nor_torch_nor_tensorflow(tmp_path):
    case = FULLY_CONNECTED[0]
    old, new = str(case.path), str(tmp_path / "new")
    code = f"""
import sys
import tracemalloc
from rllib_compat.cli import main
for args in (["inspect", {old!r}], ["convert", {old!r}, {new!r}, "--to", "msgpack"]):
    try:
        main(args)
    except SystemExit as done:
        assert done.code in (0, 1), done.code
loaded = {{"ray", "torch", "tensorflow", "gymnasium", "rich"}} & set(sys.modules)
assert not loaded, loaded
"""
    # Without what C libraries add: readline tells children of a width, which draws tables.
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env=dict(os.environ),
    )
    assert done.returncode == 0, done.stderr


LEAGUE = next(c for c in find(ray="1.13.0", framework="torch") if "league" in c.variant)


@pytest.mark.parametrize(
    ("name", "trained"),
    [
        ("0.6.6/ppo-tf-threepolicies", {"keeper", "runner"}),
        ("1.0.1/ppo-torch-threepolicies", {"keeper", "runner"}),
        ("1.13.0/ppo-torch-league20", {"main", "league_0", "league_1"}),
        ("1.13.0/ppo-torch-ma-policyspec", {"pol_a"}),
        ("2.3.1/ppo-torch-threepolicies", {"keeper", "runner"}),
        ("2.40.0/ppo-torch_new-ma-tuples", {"pol_a", "pol_b"}),
    ],
)
def test_policies_that_were_not_trained_are_not_trained_afterwards(name, trained):
    case = case_of(name)
    plan = prepare(layouts.read(case.checkpoint), given_if_asked(case))
    assert set(plan.translation.calls["multi_agent"]["policies_to_train"]) == trained
    (row,) = [f for f in plan.findings if f.rule == "policies-to-train"]
    assert all(policy in row.message for policy in plan.checkpoint.policies)


def test_a_policy_to_train_that_is_not_there_is_told():
    first, *_ = (checkpoint := layouts.read(LEAGUE.checkpoint)).policies
    plan = prepare(replace(checkpoint, policies_to_train=[first, "gone"]), Given())
    assert plan.translation.calls["multi_agent"]["policies_to_train"] == [first]
    (row,) = [f for f in plan.findings if f.rule == "policies-to-train"]
    assert row.severity is Severity.WARNING
    assert "gone" in row.message


def test_a_function_that_says_which_policies_are_trained_is_told_and_not_run():
    checkpoint = layouts.read(LEAGUE.checkpoint)
    config = {k: v for k, v in checkpoint.config.items() if k != "multiagent"}
    code = GlobalRef("their.module", "is_trained")
    plan = prepare(replace(checkpoint, config=config, policies_to_train=code), Given())
    (row,) = [f for f in plan.findings if f.rule == "policies-to-train"]
    assert row.severity is Severity.WARNING
    assert "policies_to_train" in row.hint


def test_only_the_policies_that_are_asked_for_are_converted(tmp_path):
    first, *others = layouts.read(LEAGUE.checkpoint).policies
    done = convert(
        LEAGUE.checkpoint, tmp_path / "new", to="msgpack", given=Given(policies=(first,)), inputs=5
    )
    assert list(layouts.read(tmp_path / "new").policies) == [first]
    assert any(all(other in f.message for other in others) for f in done.report)
    with pytest.raises(MissingInformationError, match="no policy 'other'"):
        prepare(layouts.read(LEAGUE.checkpoint), Given(policies=("other",)))


@pytest.mark.parametrize("to", ["msgpack", "checkpointable"])
def test_weights_that_are_not_a_number_are_a_warning_and_are_kept(to, tmp_path):
    checkpoint = layouts.read(FULLY_CONNECTED[0].checkpoint)
    (policy,) = checkpoint.policies.values()
    name = next(iter(policy.weights))
    odd = {**policy.weights, name: np.full_like(policy.weights[name], np.nan)}
    checkpoint = check(checkpoint.with_policies([replace(policy, weights=odd)]))
    plan = prepare(checkpoint, Given(), to=to)
    assert result_of(plan).endswith("not all of its weights are numbers")
    (row,) = [f for f in plan.checkpoint.findings if f.rule == "not-finite"]
    assert row.severity is Severity.WARNING
    assert name in row.message
    assert plan.networks


def test_an_infinite_limit_of_todays_modules_is_no_sign_of_a_diverged_training():
    read = layouts.read(FULLY_CONNECTED[4].checkpoint)
    policy = next(iter(read.policies.values()))
    limit = {"pi.log_std_clip_param_const": np.asarray(np.inf, np.float32)}
    whole = read.with_policies([replace(policy, weights={**policy.weights, **limit})])
    assert not [f for f in check(whole).findings if f.rule == "not-finite"]


@pytest.mark.parametrize(("algorithm", "other"), [("SimpleQ", "DQN")])
def test_what_is_gone_goes_on_as_what_took_its_place_with_a_warning(algorithm, other):
    case = next(c for c in all_cases() if c.algorithm == algorithm)
    plan = prepare(layouts.read(case.checkpoint), given_if_asked(case))
    assert (plan.form, plan.translation.algorithm) == (Form.ALGORITHM, other)
    (row,) = [f for f in plan.translation.report if f.rule == "algorithm.successor"]
    assert row.severity is Severity.WARNING
    assert f"{other} takes its place" in row.message


def test_nobody_is_promised_that_an_lstm_of_r2d2_trains_on_as_dqn():
    case = next(c for c in all_cases() if c.algorithm == "R2D2")
    plan = prepare(layouts.read(case.checkpoint), replace(given_if_asked(case), algorithm="DQN"))
    assert plan.form is Form.MODULES
    assert "LSTM" in plan.reason


@pytest.mark.parametrize("algorithm", ["DQN", "R2D2"])
def test_q_networks_without_a_name_are_r2d2s_where_they_have_an_lstm(algorithm):
    case = next(c for c in all_cases() if (c.algorithm, c.version) == (algorithm, (1, 13, 0)))
    read = layouts.read(case.checkpoint)
    found = resolve.complete(replace(read, algorithm=None, config={}), Given())
    assert found.algorithm == algorithm


def test_nobody_is_promised_that_recordings_have_the_step_before_an_lstm_takes():
    """Training died of observations that were too short for the network."""
    case = case_of("1.13.0/ppo-torch-lstm-prev")
    for algorithm, form in (("PPO", Form.ALGORITHM), ("MARWIL", Form.MODULES)):
        given = replace(given_if_asked(case), algorithm=algorithm)
        plan = prepare(layouts.read(case.checkpoint), given)
        assert plan.form is form
    assert "recorded observations" in plan.reason


def test_the_environments_name_outlives_a_second_conversion(tmp_path):
    case = FULLY_CONNECTED[2]
    read = layouts.read(case.checkpoint)
    (policy,) = read.policies.values()
    stored = {"name": "arm_of_mine", "spaces": (policy.observation_space, policy.action_space)}
    config = {**read.config, "env": None, "env_config": {"length": 3, "__legacy_env__": stored}}
    calls = prepare(replace(read, config=config), Given()).translation.calls["environment"]
    again = calls["env_config"]
    assert (again["length"], again["__legacy_env__"]["name"]) == (3, "arm_of_mine")


def test_a_network_that_gives_nan_is_the_same_network():
    odd = np.array([[np.nan, np.inf, -np.inf, 1.0]])
    (row,) = compare_outputs("p", outputs(odd), outputs(odd.copy()))
    assert row.ok
    assert row.absolute == row.relative == 0
    (row,) = compare_outputs("p", outputs(odd), outputs(odd[:, ::-1]))
    assert not row.ok


OLD_MACHINE = {
    "env_runners": {"num_env_runners": 300, "num_gpus_per_env_runner": 0.5},
    "learners": {"num_learners": 64, "num_gpus_per_learner": 1},
    "evaluation": {"evaluation_num_env_runners": 100},
}


def test_resources_that_this_machine_has_not_are_told_and_set_to_what_is_there(monkeypatch):
    monkeypatch.setattr(config_module, "_gpus", lambda: 0)
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    calls, findings = fit_resources(OLD_MACHINE, Given())
    assert calls["env_runners"] == {"num_env_runners": 3, "num_gpus_per_env_runner": 0}
    assert calls["learners"] == {"num_learners": 0, "num_gpus_per_learner": 0}
    assert calls["evaluation"] == {"evaluation_num_env_runners": 3}
    assert len(findings) == 5
    assert all(f.severity is Severity.WARNING for f in findings)
    assert any("300" in f.message for f in findings)


def test_resources_that_this_machine_has_stay(monkeypatch):
    monkeypatch.setattr(config_module, "_gpus", lambda: 2)
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    small = {
        "env_runners": {"num_env_runners": 2},
        "learners": {"num_learners": 2, "num_gpus_per_learner": 1},
    }
    assert fit_resources(small, Given()) == (small, [])
    assert fit_resources(OLD_MACHINE, Given(keep_resources=True)) == (OLD_MACHINE, [])


@pytest.mark.parametrize(("cpus", "learners", "runners"), [(1, 0, 1), (2, 1, 1), (8, 1, 2)])
def test_resources_that_only_rays_default_names_fit_the_machine(
    monkeypatch, cpus, learners, runners
):
    from ray.rllib.algorithms.impala import IMPALAConfig

    monkeypatch.setattr(config_module, "_gpus", lambda: 0)
    monkeypatch.setattr("os.cpu_count", lambda: cpus)
    defaults = IMPALAConfig()
    assert (defaults.num_learners, defaults.num_env_runners) == (1, 2)
    calls, findings = fit_resources({}, Given(), defaults)
    assert calls.get("learners", {}).get("num_learners", 1) == learners
    assert calls.get("env_runners", {}).get("num_env_runners", 2) == runners
    assert all("Ray's default is" in f.message for f in findings)


def test_a_learner_whose_gpu_is_gone_is_where_this_ray_wants_it(monkeypatch):
    from ray.rllib.algorithms.impala import IMPALAConfig

    monkeypatch.setattr(config_module, "_gpus", lambda: 0)
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    with_gpu = {"learners": {"num_learners": 0, "num_gpus_per_learner": 1}}
    calls, _ = fit_resources(with_gpu, Given(), IMPALAConfig())
    IMPALAConfig().learners(**calls["learners"]).validate()
    assert calls["learners"]["num_gpus_per_learner"] == 0


def test_resources_that_are_asked_for_are_taken(monkeypatch):
    monkeypatch.setattr(config_module, "_gpus", lambda: 0)
    calls, findings = fit_resources({}, Given(num_gpus=2, num_env_runners=7))
    assert calls["learners"] == {"num_learners": 2, "num_gpus_per_learner": 1}
    assert calls["env_runners"] == {"num_env_runners": 7}
    assert all(f.severity is Severity.INFO for f in findings)


@pytest.mark.parametrize("ray", ["2.1.0", "2.3.1", "2.10.0", "2.35.0"])
def test_what_ray_keeps_for_itself_in_a_config_needs_no_attention(ray):
    case = next(c for c in find(ray=ray, algorithm="PPO") if len(c.policies) > 1)
    plan = prepare(layouts.read(case.checkpoint), given_if_asked(case))
    odd = ("worker_index", "__policy_id", "_AlgorithmConfig", "buffer_size", "differ between")
    shown = [f for f in (*plan.findings, *plan.translation.report) if f.severity != Severity.INFO]
    assert not [f for f in shown if any(word in f.path + f.message for word in odd)]


def test_what_happened_to_all_policies_is_one_row():
    def row(path, message="kept"):
        return Finding("rule", Severity.INFO, Verdict.KEPT, path, message)

    many = [row(f"policies.p{i}.weights") for i in range(20)]
    one, other, last = grouped([*many, row("policies.a.weights", "lost"), row("$.lr"), row("$.lr")])
    assert one.path == "policies.*.weights"
    assert one.message == "kept (p0, p1, p2, p3, p4 and 15 more)"
    assert other == row("policies.a.weights", "lost")
    assert last == row("$.lr")
    items = grouped(row(f"policies.a.optimizer[{i}]") for i in range(20))
    assert [finding.path for finding in items] == ["policies.a.optimizer[*]"]


def test_recordings_of_the_caller_are_read_as_they_are_not_as_the_files_ray_does(tmp_path):
    (case,) = find(ray="2.0.1", algorithm="BC")
    (tmp_path / "steps.json").write_text("{}\n")
    checkpoint = layouts.read(case.checkpoint)
    todays = {"input_read_method": "read_parquet", "input_read_episodes": False}
    given = replace(given_if_asked(case), overrides={"input": str(tmp_path)})
    plans = [
        prepare(replace(checkpoint, config={**checkpoint.config, **told}), given)
        for told in ({}, todays)
    ]
    read, again = (plan.translation.calls["offline_data"] for plan in plans)
    assert again["input_"] == read["input_"] != str(tmp_path)
    assert again["input_read_episodes"] is True


def test_the_networks_of_curiosity_are_told_and_the_policys_own_go_on():
    (case,) = find(ray="1.13.0", variant="curiosity")
    given = given_if_asked(case)
    done = convert(case.checkpoint, "unused", given=given, dry_run=True)
    rows = [f for f in done.report if f.verdict is Verdict.DROPPED and "_curiosity_" in f.message]
    assert [f.path for f in rows] == ["policies.default_policy.weights"]
    assert (done.plan.form, "exploration_config" in done.plan.reason) == (Form.MODULES, True)
    assert "exploration_config={}" in describe_next_step(done.plan, Path("new"), given)
    plain = {"exploration_config": {}}
    again = convert(case.checkpoint, "unused", given=replace(given, overrides=plain), dry_run=True)
    assert again.trains_on
    moments = [f for f in again.report if f.path == "policies.default_policy.optimizer"]
    assert {f.severity for f in moments} == {Severity.INFO}


#: Only policies of the old API stack explored so.
CURIOUS = Given(overrides={"exploration_config": {"type": "Curiosity"}})


def test_what_several_parts_lack_for_one_reason_is_one_row():
    case = next(c for c in find(ray="1.13.0") if c.variant == "noisy-atoms-duel")
    report = convert(case.checkpoint, "unused", given=CURIOUS, dry_run=True).report
    why = "$.exploration_config can be trained on the old API stack only"
    rows = [f for f in grouped(report) if f.verdict is Verdict.DROPPED and why in f.message]
    assert [f.path for f in rows] == [
        "config, counters, policies.*.optimizer, policies.*.exploration"
    ]


def test_what_only_the_config_tells_is_said_beside_the_proof(tmp_path):
    report = convert(FULLY_CONNECTED[0].checkpoint, tmp_path / "new", to="msgpack", inputs=5).report
    rows = {f.path.rpartition(".")[2]: f.message for f in report if f.rule == "assumed"}
    assert "relu" in rows["activation"] or "tanh" in rows["activation"]
    assert "not proven" in rows["head"]


@pytest.mark.parametrize("verb", [convert, inspect, verify])
def test_a_source_that_the_disk_refuses_is_told(verb, tmp_path, monkeypatch):
    def gone(path, budget):
        raise FileNotFoundError(errno.ENOENT, "gone", "policy_state.pkl")

    monkeypatch.setattr(layouts, "_read", gone)
    arguments = (tmp_path / "old",) if verb is inspect else (tmp_path / "old", tmp_path / "new")
    with pytest.raises(FileSystemError, match="not there, or no longer"):
        verb(*arguments)
    assert list(tmp_path.iterdir()) == []


def test_modules_alone_are_read_again_without_hints_and_say_that_nothing_trains_them(tmp_path):
    noisy = case_of("1.13.0/dqn-torch-noisy-atoms-duel")
    first = convert(noisy.checkpoint, tmp_path / "modules", given=CURIOUS, inputs=20)
    assert first.plan.form is Form.MODULES
    again = convert(tmp_path / "modules", tmp_path / "again", inputs=20)
    assert again.plan.form is Form.MODULES
    assert "only modules" in again.plan.reason
    assert digest_tree(tmp_path / "again") == digest_tree(tmp_path / "modules")
    with pytest.raises(NotYetError, match="only modules"):
        load(tmp_path / "modules")


def test_what_ray_deprecates_of_itself_is_not_told_to_who_converts():
    names = "ray.rllib.utils.deprecation", "ray._common.deprecation"
    records = [logging.LogRecord(n, logging.WARNING, "", 0, "old", (), None) for n in names]
    with startup.quiet_logs():
        logging.getLogger("ray.rllib").setLevel(logging.WARNING)  # as every algorithm does
        handlers = logging.getLogger("ray").handlers
        assert not any(handler.filter(record) for handler in handlers for record in records)
    assert all(handler.filter(record) for handler in handlers for record in records)


@pytest.mark.parametrize(
    ("exploration", "told"),
    [
        ({"type": "SoftQ"}, {"soft_q_temperature": 1.0}),
        (
            {"type": "ParameterNoise"},
            {"parameter_noise": {"initial_stddev": 1.0, "layer_norm": False}},
        ),
    ],
)
def test_a_plain_network_stays_plain_whatever_it_explores_by(exploration, told, tmp_path):
    """Also where that Ray's torch ignored `noisy`, and had no norms."""
    case = case_of("0.8.5/dqn-torch-v-noisy-torch")
    given = Given(env="CartPole-v1", overrides={"exploration_config": exploration})
    done = convert(case.checkpoint, tmp_path / "new", given=given, inputs=20)
    assert done.plan.form is Form.ALGORITHM
    (again,) = layouts.read(tmp_path / "new").policies.values()
    assert again.policy_class == "rllib_compat.modules.ExploringQModule"
    assert exploring(again.config["model"]) == told
    second = convert(tmp_path / "new", tmp_path / "again", inputs=20)
    (last,) = layouts.read(tmp_path / "again").policies.values()
    assert exploring(last.config["model"]) == told
    assert second.plan.form is Form.ALGORITHM


def test_a_large_network_is_in_memory_twice(tmp_path):
    size = 1000
    shapes = {"fc_1": (4, size), "fc_2": (size, size), "fc_out": (size, 2)}
    shapes |= {"fc_value_1": (4, size), "fc_value_2": (size, size), "value_out": (size, 1)}
    arrays = {f"default_policy/{k}/kernel": np.ones(v, np.float32) for k, v in shapes.items()}
    arrays |= {f"default_policy/{k}/bias": np.ones(v[1], np.float32) for k, v in shapes.items()}
    worker = pickle.dumps({"state": {"default_policy": arrays}, "filters": {}}, 4)
    old = tmp_path / "checkpoint-1"
    old.write_bytes(pickle.dumps({"worker": worker}, 4))
    known = {"observation_space": "Box(4,)", "action_space": "Discrete(2)", "algorithm": "PPO"}
    known["config"] = {"env": "x", "model": {"fcnet_hiddens": [size, size]}}
    tracemalloc.start()
    convert(old, tmp_path / "new", to="msgpack", inputs=5, **known)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # The old file, the new one, and of the largest layer, half of all, float64.
    assert peak < 3.5 * old.stat().st_size + (30 << 20)
