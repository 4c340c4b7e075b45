"""Weights as other people's checkpoints held them: what no clean run of one iteration shows."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

from rllib_compat import Given
from rllib_compat.conversion import identify_networks
from rllib_compat.errors import CheckpointError, MissingInformationError
from rllib_compat.formats import read_checkpoint
from rllib_compat.networks import ModelSettings
from rllib_compat.networks import read as read_policy
from rllib_compat.neutral import PolicyState, Severity
from rllib_compat.neutral.spaces import Discrete, box
from tests.legacy.cases import case_of
from tests.legacy.networks import only_policy
from tests.unit.networks.dense import policy_rows, value_rows
from tests.unit.networks.dense import vector_of as drawn

FOUR, TWO = box(-np.inf, np.inf, (4,)), Discrete(2)
PPO = ModelSettings(hiddens=(3, 5), kl_coeff=0.2)


def vector_of(kl, *, kl_first, rng):
    """A flat vector of Ray 0.5 – 0.7, the KL coefficient behind the policy or at the end."""
    (policy, actor), (value, critic) = (
        drawn(rows, rng) for rows in (policy_rows(), value_rows(shares_layers=False))
    )
    parts = [policy, [kl], value] if kl_first else [policy, value, [kl]]
    return np.concatenate([np.float32(part) for part in parts]), actor | critic


def coefficient(ups, downs, initial=0.2):
    for step in [1.5] * ups + [0.5] * downs:
        initial *= step
    return np.float32(initial)


@pytest.mark.parametrize("kl_first", [True, False])
@pytest.mark.parametrize(
    ("ups", "downs"), [(0, 0), (3, 1), (0, 64), (70, 90), (700, 500), (0, 140), (0, 148), (5, 2000)]
)
def test_a_ppo_vector_is_cut_right_however_often_its_kl_coefficient_moved(kl_first, ups, downs):
    kl = coefficient(ups, downs)
    vector, arrays = vector_of(kl, kl_first=kl_first, rng=np.random.default_rng(ups + downs))
    policy = PolicyState("p", vector, observation_space=FOUR, action_space=TWO)
    reading = read_policy(policy, PPO)
    assert reading.state["kl_coeff"] == float(kl)
    for name, array in arrays.items():
        np.testing.assert_array_equal(reading.network.arrays[name], array)


def test_a_number_that_no_updates_of_the_kl_coefficient_give_does_not_cut_a_vector():
    vector, _ = vector_of(np.float32(-0.2), kl_first=True, rng=np.random.default_rng(0))
    policy = PolicyState("p", vector, observation_space=FOUR, action_space=TWO)
    with pytest.raises(CheckpointError, match="fits no fully connected network"):
        read_policy(policy, PPO)


@pytest.mark.parametrize("scope", ["default_policy_wk0", "default_policy_wk12"])
def test_variables_in_the_scope_of_a_rollout_worker_are_found(scope):
    _, policy, settings = only_policy(case_of("2.0.1/ppo-tf-onelayer-tanh"))
    assert all(name.startswith("default_policy/") for name in policy.weights)
    moved = {k.replace("default_policy/", f"{scope}/"): v for k, v in policy.weights.items()}
    old = read_policy(policy, settings).network
    new = read_policy(replace(policy, weights=moved), settings).network
    assert new.arrays.keys() == old.arrays.keys()


def test_rays_marks_of_moved_keys_are_not_taken_as_given():
    settings = ModelSettings.from_config(
        {
            "parameter_noise": -1,
            "vf_share_layers": -1,
            "v_min": -1,
            "model": {"lstm_use_prev_action_reward": -1, "vf_share_layers": True},
        },
        {},
    )
    assert "parameter_noise" not in settings.config
    assert "lstm_use_prev_action_reward" not in settings.model
    assert settings.shares_layers
    assert settings.config["v_min"] == -1


def test_a_custom_model_that_td3_did_not_use_is_not_asked_for():
    _, policy, settings = only_policy(case_of("0.8.7/td3-torch-small"))
    reading = read_policy(policy, replace(settings, custom_model="MyModel"))
    assert reading.network.arrays.keys() == read_policy(policy, settings).network.arrays.keys()
    (note,) = [f for f in reading.findings if f.rule == "custom-model"]
    assert note.severity is Severity.WARNING
    assert "MyModel" in note.message


def test_a_custom_model_with_weights_of_its_own_is_still_asked_for():
    _, policy, settings = only_policy(case_of("0.8.7/td3-torch-small"))
    more = {**policy.weights, "my_layer.weight": np.zeros((2, 2), np.float32)}
    with pytest.raises(MissingInformationError, match="custom model MyModel"):
        read_policy(replace(policy, weights=more), replace(settings, custom_model="MyModel"))


def test_a_list_of_tf2_with_a_scalar_is_a_list_of_arrays_and_dqns_epsilon_is_not(tmp_path):
    def stored(*state):
        worker = pickle.dumps({"state": {"default_policy": list(state)}, "filters": {}})
        (tmp_path / "checkpoint-1").write_bytes(pickle.dumps({"worker": worker}))
        return read_checkpoint(tmp_path / "checkpoint-1").policies["default_policy"]

    arrays = [np.zeros((2, 3), np.float32), np.zeros(3, np.float32)]
    found = stored(*arrays, np.float32(0.5))
    assert [a.shape for a in found.weights] == [(2, 3), (3,), ()]
    assert found.exploration is None
    dqn = stored(arrays[1], 0.02)
    assert dqn.weights.shape == (3,)
    assert dqn.exploration == [0.02]


def test_a_q_networks_head_tells_the_actions():
    checkpoint, policy, _ = only_policy(case_of("2.0.1/dqn-torch-noduel"))
    bare = checkpoint.with_policies([replace(policy, action_space=None)])
    config = {key: value for key, value in bare.config.items() if key != "env"}
    found, networks = identify_networks(replace(bare, config=config), Given())
    assert networks[policy.policy_id].choices == policy.action_space.n
    assert found.policies[policy.policy_id].action_space == policy.action_space
    assert sum("Q-value for each" in note.message for note in found.findings) == 1


def test_a_critic_of_continuous_actions_tells_no_choices():
    _, policy, settings = only_policy(case_of("0.8.7/td3-torch-small"))
    assert read_policy(policy, settings).known.choices is None


def test_of_two_arrays_for_one_place_none_is_lost():
    weights = {
        "_logits._model.0.weight": np.zeros((2, 4), np.float32),
        "_logits._model.1.weight": np.ones((2, 4), np.float32),
        "_logits._model.0.bias": np.zeros(2, np.float32),
        "_value_branch._model.0.weight": np.zeros((1, 4), np.float32),
        "_value_branch._model.0.bias": np.zeros(1, np.float32),
    }
    with pytest.raises(CheckpointError, match=r"_logits\._model\.1\.weight"):
        read_policy(PolicyState("p", weights), ModelSettings())
