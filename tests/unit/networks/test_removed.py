"""What old checkpoints of removed algorithms are refused for, and what of them is found out."""

import shutil
from dataclasses import replace

import numpy as np
import pytest

from rllib_compat import Given, convert, load_policy
from rllib_compat.conversion import prepare
from rllib_compat.errors import CheckpointError, CompatError, MissingInformationError, NotYetError
from rllib_compat.formats import read_checkpoint
from rllib_compat.networks import ModelSettings, read
from rllib_compat.neutral import spaces
from tests.legacy.cases import Case, case_of
from tests.legacy.networks import given_if_asked

UCB = case_of("1.13.0/banditlinucb-torch-arms")
ITEMS = case_of("1.13.0/banditlinucb-torch-items")
KERAS = case_of("1.13.0/banditlinucb-tf2-arms")
CRR = case_of("2.0.1/crr-torch-discrete")
RNNSAC = case_of("1.13.0/rnnsac-torch-discrete")
MADDPG = case_of("1.13.0/maddpg-tf-two")


def completed(checkpoint, given=Given()):  # noqa: B008 - it is frozen
    """The checkpoint with what it does not say itself."""
    return prepare(checkpoint, given, to="msgpack").checkpoint


def policy_of(case):
    checkpoint = prepare(
        read_checkpoint(case.checkpoint), given_if_asked(case), to="msgpack"
    ).checkpoint
    (policy,) = checkpoint.policies.values()
    return checkpoint, policy


def without(weights, *names):
    return {name: array for name, array in weights.items() if name not in names}


def with_(name, change):
    return lambda weights: {**weights, name: change(np.array(weights[name]))}


def _poisoned(array):
    array.flat[0] = np.nan
    return array


BROKEN = {
    "cut in the middle": (UCB, lambda w: dict(list(w.items())[:-5]), "theta of arm 1"),
    "an arm too few": (UCB, lambda w: without(w, *[n for n in w if "arms.1" in n]), "arm 1"),
    "an arm that nobody has": (
        UCB,
        lambda w: {**w, "arms.4000000000.theta": w["arms.0.theta"]},
        "arm 3",
    ),
    "another array": (UCB, lambda w: {**w, "arms.0.bias": w["arms.0.f"]}, "bias"),
    "a smaller precision": (UCB, with_("arms.1.precision", lambda a: a[:4, :4]), "precision"),
    "smaller means": (
        UCB,
        lambda w: {n: a[:4] if n.endswith("theta") else a for n, a in w.items()},
        "shapes",
    ),
    "numbers in the place of tables": (
        UCB,
        lambda w: {n: np.float32(1).reshape(()) for n in w},
        "shapes",
    ),
    "NaN": (UCB, with_("arms.2.f", _poisoned), "finite"),
    "a precision of -1": (UCB, with_("arms.0.precision", lambda a: -a), "positive"),
    "a lopsided precision": (
        UCB,
        with_("arms.0.precision", lambda a: np.triu(a) + 3),
        "symmetric",
    ),
    "another covariance": (UCB, with_("arms.0.covariance", lambda a: a * 0.1), "inverse"),
    "another mean": (UCB, with_("arms.0.theta", lambda a: a + 1), "mean"),
    "arrays without names, one too few": (KERAS, lambda w: w[:-1], "11 arrays"),
    "arrays in another order": (KERAS, lambda w: [w[3], w[1], w[2], w[0], *w[4:]], "damaged"),
    "a vector": (KERAS, lambda w: np.concatenate([a.ravel() for a in w])[:-1], "without names"),
    "no arrays of items": (ITEMS, lambda w: without(w, "arm.f"), "f of arm 0"),
    "CRR: a layer too few": (
        CRR,
        lambda w: without(w, "actor_model.actor_out._model.0.weight"),
        r"pi\.out\.kernel",
    ),
    "CRR: a smaller critic": (
        CRR,
        with_("q_model.q_out._model.0.weight", lambda a: a[:, :3]),
        "do not fit",
    ),
    "RNNSAC: no LSTM": (
        RNNSAC,
        lambda w: {n: a for n, a in w.items() if ".lstm." not in n},
        r"pi\.lstm\.kernel",
    ),
    "RNNSAC: a smaller LSTM": (
        RNNSAC,
        with_("q_net.lstm.weight_hh_l0", lambda a: a[:, :3]),
        "do not fit|operands",
    ),
    "RNNSAC: another model": (
        RNNSAC,
        lambda w: {**w, "action_model._convs.0.weight": np.zeros((3, 3))},
        "_convs",
    ),
    "MADDPG: a bias too few": (MADDPG, lambda w: w[:-1], "19 arrays"),
    "MADDPG: its actor first": (MADDPG, lambda w: [*w[6:10], *w[:6], *w[10:]], "20 arrays"),
    "MADDPG: smaller targets": (
        MADDPG,
        lambda w: [*w[:10], *[a[:2] for a in w[10:]]],
        "20 arrays",
    ),
    "MADDPG: a vector": (MADDPG, lambda w: np.concatenate([a.ravel() for a in w]), "arrays"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_damaged_weights_are_refused(name):
    case, change, match = BROKEN[name]
    checkpoint = read_checkpoint(case.checkpoint)
    policies = checkpoint.policies.values()
    broken = checkpoint.with_policies(replace(p, weights=change(p.weights)) for p in policies)
    with pytest.raises(CheckpointError, match=match):
        prepare(broken, given_if_asked(case))


@pytest.mark.parametrize("case", [UCB, CRR, RNNSAC], ids=str)
def test_a_file_that_was_cut_off_is_refused_and_nothing_is_written(case, tmp_path):
    shutil.copytree(case.path, tmp_path / "old")
    (file,) = (tmp_path / "old").rglob("checkpoint-2")
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    old = tmp_path / "old" / case.checkpoint.relative_to(case.path)
    with pytest.raises(CompatError):
        convert(old, tmp_path / "new", given=given_if_asked(case))
    assert [path.name for path in tmp_path.iterdir()] == ["old"]


@pytest.mark.parametrize(
    ("case", "more", "match"),
    [
        (UCB, {"model": {"alpha": 2.5}}, "alpha=1"),
        (UCB, {"model": {"alpha": "much"}}, "alpha"),
        (CRR, {"critic_hiddens": [7, 7]}, "critic_hiddens"),
        (RNNSAC, {"policy_model": {"fcnet_hiddens": [9]}}, r"hidden layers \[7\]"),
        (RNNSAC, {"policy_model": {"lstm_use_prev_action": True}}, "previous actions"),
    ],
    ids=str,
)
def test_a_config_that_contradicts_the_weights_is_refused(case, more, match):
    checkpoint, policy = policy_of(case)
    config = dict(checkpoint.config)
    for key, value in more.items():
        old = config.get(key)
        config[key] = {**old, **value} if isinstance(old, dict) else value
    settings = ModelSettings.from_config(config, {}, algorithm=checkpoint.algorithm)
    with pytest.raises(CheckpointError, match=match):
        read(policy, settings)


@pytest.mark.parametrize("case", [UCB, CRR, RNNSAC], ids=str)
def test_spaces_that_do_not_fit_are_refused(case):
    checkpoint, policy = policy_of(case)
    settings = ModelSettings.of(checkpoint, policy)
    for odd in (
        {"observation_space": spaces.box(-2.0, 2.0, (4,))},
        {"action_space": spaces.Discrete(4)},
    ):
        with pytest.raises(CheckpointError, match="needs 4"):
            read(replace(policy, **odd), settings)


def test_the_posterior_tells_its_alpha_where_the_config_is_silent():
    checkpoint, policy = policy_of(UCB)
    wider = {n: 2.5 * a if n.endswith("covariance") else a for n, a in policy.weights.items()}
    settings = ModelSettings.of(checkpoint, policy)
    network = read(replace(policy, weights=wider), settings).network
    assert network.target.model_config["alpha"] == pytest.approx(2.5, rel=1e-4)
    same = read(policy, settings).network
    assert same.target.model_config["alpha"] == 1.0


def test_a_table_of_items_is_found_behind_other_parts():
    checkpoint, policy = policy_of(ITEMS)
    settings = ModelSettings.of(checkpoint, policy)
    both = spaces.DictSpace(
        {"about": spaces.box(-1, 1, (2,)), "item": spaces.box(-2.0, 2.0, (3, 4))}
    )
    network = read(replace(policy, observation_space=both), settings).network
    plain = read(policy, settings).network
    seen = case_inputs(ITEMS)
    wider = np.concatenate([np.ones((len(seen), 2)), seen], -1)
    values = plain.forward({"obs": seen})["q_values"]
    np.testing.assert_array_equal(network.forward({"obs": wider})["q_values"], values)
    odd = spaces.DictSpace({"about": spaces.Discrete(2), "item": spaces.box(-2.0, 2.0, (3, 4))})
    with pytest.raises(NotYetError, match="about"):
        read(replace(policy, observation_space=odd), settings)


def case_inputs(case):
    return case.expected().inputs


@pytest.mark.parametrize(
    ("ray", "more", "scale"),
    [
        ("2.0.1", {}, 1 / 2),
        ("2.1.0", {}, 1 / 64),  # of two critics and 32 steps
        ("2.2.0", {"td_error_loss_fn": "huber"}, 1),
        ("2.2.0", {"train_batch_size": 10}, 1 / 20),
    ],
)
def test_moments_of_crr_are_scaled_as_the_losses_of_its_rays_were(ray, more, scale):
    checkpoint, policy = policy_of(CRR)
    config = {**checkpoint.config, **more}
    settings = ModelSettings.from_config(config, {}, algorithm="CRR", ray=ray)
    actor, critic = read(policy, settings).network.optimizers
    assert (actor.scale, critic.scale) == (1, scale)


@pytest.mark.parametrize(
    ("name", "lost", "scale"),
    [
        ("2.0.1/crr-torch-box", ".tune_metadata", 1 / 2),
        ("2.1.0/crr-torch-discrete", "rllib_checkpoint.json", 1 / 64),
    ],
)
def test_moments_of_crr_are_scaled_where_the_file_that_tells_the_ray_is_lost(
    name, lost, scale, tmp_path
):
    """Critics then went on from moments up to 64² times too large, and no report said so."""
    folder = tmp_path / "case"
    shutil.copytree(case_of(name).path, folder, ignore=shutil.ignore_patterns(lost))
    checkpoint, policy = policy_of(Case.at(folder))
    assert checkpoint.source.ray_version is None
    _, critic = read(policy, ModelSettings.of(checkpoint, policy)).network.optimizers
    assert critic.scale == scale


def test_a_bandit_that_chooses_items_asks_for_their_table():
    """It went on as one that sees a single item and has one arm, and was called equal."""
    checkpoint, policy = policy_of(ITEMS)
    flat = replace(policy, observation_space=spaces.box(-np.inf, np.inf, (4,)))
    for told in (flat, replace(policy, observation_space=None)):
        with pytest.raises(MissingInformationError, match="Dict with 'item'"):
            read(told, ModelSettings.of(checkpoint, told))


@pytest.mark.parametrize(
    ("trial", "name"),
    [
        ("contrib_LinUCB_museum-tiny_0_2020-06-01_12-00-00", "BanditLinUCB"),
        ("contrib_LinTS_CartPole-v0_7b2f_00000", "BanditLinTS"),
        ("LinTS_museum-tiny_2020-06-01_12-00-00", "BanditLinTS"),
    ],
)
def test_the_folder_of_a_trial_tells_what_was_contributed(trial, name, tmp_path):
    """Tune writes `contrib/LinUCB` so; the caller was asked for the algorithm."""
    shutil.copytree(UCB.checkpoint.parent, tmp_path / trial / "checkpoint_2")
    checkpoint = read_checkpoint(tmp_path / trial / "checkpoint_2" / UCB.checkpoint.name)
    (policy,) = checkpoint.policies.values()
    checkpoint = checkpoint.with_policies([replace(policy, policy_class=None)])
    assert completed(replace(checkpoint, algorithm=None)).algorithm == name


def test_tensorflow_counted_twice_what_it_expected_and_so_does_the_module():
    checkpoint, policy = policy_of(KERAS)
    reading = read(policy, ModelSettings.of(checkpoint, policy))
    assert reading.network.target.model_config["times"] == 2.0
    assert any("twice" in finding.message for finding in reading.findings)


@pytest.mark.parametrize("case", [UCB, KERAS, ITEMS, CRR, RNNSAC], ids=str)
def test_policies_act_without_ray(case):
    policy = load_policy(case.checkpoint, given=given_if_asked(case))
    expected = case.expected()
    first = expected.arrays.get("obs", expected.arrays.get("obs/item"))[0]
    seen = {"item": first} if case is ITEMS else first
    values = expected.arrays.get("out/action_dist_inputs", expected.arrays.get("out/q_values"))
    action, *_ = policy.compute_single_action(seen, explore=False)
    if case is not RNNSAC:  # whose recording begins in another state
        assert action == values[0].argmax()


@pytest.mark.parametrize(("case", "found"), [(CRR, "CRR"), (RNNSAC, "RNNSAC")], ids=str)
def test_a_policy_class_tells_its_algorithm(case, found, tmp_path):
    assert algorithm_of(case, tmp_path / "some") == found


def test_a_bandit_is_asked_for_unless_a_folder_tells_which_it_was(tmp_path):
    assert algorithm_of(UCB, tmp_path / "BanditLinUCB_mine_0") == "BanditLinUCB"
    assert algorithm_of(UCB, tmp_path / "some") is None
    old = next((tmp_path / "some").rglob("checkpoint-2"))
    with pytest.raises(MissingInformationError, match="BanditLinTS or BanditLinUCB"):
        convert(old, tmp_path / "new")


def algorithm_of(case, folder):
    shutil.copytree(case.path, folder)
    old = folder / case.checkpoint.relative_to(case.path)
    return completed(read_checkpoint(old)).algorithm


def test_maddpg_has_the_layers_that_its_ray_had_where_the_config_is_silent():
    checkpoint = read_checkpoint(MADDPG.checkpoint)
    policy = checkpoint.policies["left"]
    settings = ModelSettings.from_config({}, {}, algorithm="MADDPG")
    with pytest.raises(CheckpointError, match=r"actor_hiddens \[64, 64\]"):
        read(policy, settings)
    more = {"actor_hiddens": [6], "critic_hiddens": [8, 5], "use_state_preprocessor": True}
    with pytest.raises(NotYetError, match="use_state_preprocessor"):
        read(policy, ModelSettings.from_config(more, {}, algorithm="MADDPG"))


def test_maddpg_does_not_act_without_ray():
    with pytest.raises(NotYetError, match="simplex"):
        load_policy(MADDPG.checkpoint, "left", given=given_if_asked(MADDPG))


def test_thompson_sampling_is_not_drawn_without_ray():
    case = case_of("1.13.0/banditlints-torch-arms")
    policy = load_policy(case.checkpoint, given=given_if_asked(case))
    seen = case.expected().arrays["obs"][0]
    action, *_ = policy.compute_single_action(seen)
    assert action == case.expected().arrays["out/q_values"][0].argmax()
    with pytest.raises(NotYetError, match="Thompson sampling"):
        policy.compute_single_action(seen, explore=True)
