"""Networks with an LSTM, and the previous actions and rewards that they take."""

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rllib_compat.errors import CheckpointError, MissingInformationError, NotYetError
from rllib_compat.networks import (
    DEFAULT,
    ModelSettings,
    from_canonical,
    plan_optimizers,
    to_canonical,
)
from rllib_compat.networks import read as read_policy
from rllib_compat.networks.families import dense
from rllib_compat.networks.families.recurrent import names_of, split_cells
from rllib_compat.networks.named import Named
from rllib_compat.networks.ops import in_numpy, in_torch
from rllib_compat.networks.previous_steps import choices_of, previous
from rllib_compat.networks.trunks.dense import DENSE
from rllib_compat.networks.trunks.vision import VISION
from rllib_compat.neutral import PolicyState, Verdict
from rllib_compat.neutral.spaces import Discrete, MultiDiscrete, TupleSpace, box
from tests.legacy.cases import all_cases, case_of
from tests.legacy.networks import only_policy, read

LSTM = [c for c in all_cases() if "lstm" in c.variant and c.ray != "0.8.5"]
SEQUENCES = [c for c in LSTM if any(n.startswith("seq/") for n in c.expected().arrays)]
SIZES = st.integers(1, 5)


# What an LSTM computes ---------------------------------------------------------------------------


@pytest.mark.parametrize("case", SEQUENCES, ids=str)
def test_a_whole_episode_is_computed_as_when_it_was_alive(case):
    _, networks = read(case)
    (network,), arrays = networks.values(), case.expected().arrays
    found = {"obs": case.expected().inputs, **arrays}
    if found["obs"] is None:
        found["obs"] = arrays["obs_raw"]
    inputs = {
        name: np.zeros((1, *shape))
        if name in network.graph.states
        else found[name].reshape(1, -1, *shape)
        for name, shape in network.graph.inputs.items()
    }
    out = network.forward(inputs)
    logits = arrays["seq/logits"]
    np.testing.assert_allclose(out["action_dist_inputs"][0], logits, atol=1e-4)
    if "vf_preds" in out and "seq/vf_preds" in arrays:
        np.testing.assert_allclose(out["vf_preds"][0], arrays["seq/vf_preds"], atol=1e-4)
    for i, name in enumerate(network.graph.states):
        np.testing.assert_allclose(out[name], arrays[f"seq/state_out_{i}"], atol=1e-4)


@given(
    seed=st.integers(0, 99),
    sizes=st.tuples(SIZES, SIZES, SIZES, SIZES),
    gates=st.sampled_from(["sigmoid", "hard_sigmoid"]),
    second=st.booleans(),
)
def test_torch_computes_the_lstm_that_numpy_computes(seed, sizes, gates, second):
    batch, steps, inputs, cells = sizes
    rng = np.random.default_rng(seed)
    shapes = {"kernel": (inputs, 4 * cells), "recurrent_kernel": (cells, 4 * cells)}
    shapes |= dict.fromkeys(["bias", "recurrent_bias"] if second else ["bias"], (4 * cells,))
    own = {name: rng.normal(size=shape) for name, shape in shapes.items()}
    values = [rng.normal(size=(batch, steps, inputs))]
    values += [rng.normal(size=(batch, cells)) for _ in range(2)]
    out, states = in_numpy.lstm(own, {"gates": gates}, *values)
    theirs, their_states = in_torch.lstm(
        {k: torch.from_numpy(v) for k, v in own.items()},
        {"gates": gates},
        *map(torch.from_numpy, values),
    )
    np.testing.assert_allclose(theirs, out, atol=1e-10)
    for name, state in states.items():
        np.testing.assert_allclose(their_states[name], state, atol=1e-10)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=4), st.integers(0, 99))
def test_previous_actions_become_the_same_one_hot_vectors_in_both(parts, seed):
    rng = np.random.default_rng(seed)
    x = np.stack([rng.integers(0, n or 9, (2, 3)) for n in parts], axis=-1).astype(float)
    ours = in_numpy.one_hot({}, {"parts": parts}, x)
    theirs = in_torch.one_hot({}, {"parts": parts}, torch.from_numpy(x))
    np.testing.assert_array_equal(theirs, ours)
    assert ours.shape[-1] == sum(n or 1 for n in parts)
    assert np.all(ours.sum(-1) >= sum(n > 0 for n in parts))


# Names -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["slim", "layers", "keras", "torch"])
@pytest.mark.parametrize("trunk", [DENSE, VISION], ids=lambda t: t.kind)
def test_weights_come_back_the_same_from_every_naming_scheme(scheme, trunk):
    rng = np.random.default_rng(0)
    arrays = {
        "lstm.kernel": rng.normal(size=(3, 8)),
        "lstm.recurrent_kernel": rng.normal(size=(2, 8)),
        "lstm.bias": rng.normal(size=8),
        "logits.kernel": rng.normal(size=(2, 4)),
        "value.kernel": rng.normal(size=(2, 1)),
    }
    names = names_of(trunk, scheme)
    again, left = to_canonical(names, from_canonical(names, arrays))
    assert not left
    assert again.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_allclose(again[name], array)


def test_the_kernel_of_an_old_cell_is_parted_by_what_it_multiplies():
    kernel = np.arange(5 * 8.0).reshape(5, 8)
    parts = split_cells({"rnn/basic_lstm_cell/kernel": kernel, "fc1/weights": kernel})
    np.testing.assert_array_equal(parts["cell/kernel"], kernel[:3])
    np.testing.assert_array_equal(parts["cell/recurrent_kernel"], kernel[3:])
    assert parts["fc1/weights"] is kernel


# What becomes of it ------------------------------------------------------------------------------


def test_torchs_lstm_becomes_todays_default_module_and_keras_one_of_ours():
    _, policy, settings = only_policy(case_of("2.0.1/ppo-torch-lstm"))
    network = read_policy(policy, settings).known
    assert network.target.module is None
    assert network.target.model_config["use_lstm"]
    assert set(network.unused) == {n for n in policy.weights if "_separate" in n}
    _, policy, settings = only_policy(case_of("1.13.0/ppo-tf-lstm"))
    assert read_policy(policy, settings).known.target.module == dense.ACTOR_CRITIC


def test_the_length_of_training_sequences_goes_on():
    _, policy, settings = only_policy(case_of("1.13.0/ppo-tf-lstm"))
    assert read_policy(policy, settings).known.target.model_config["max_seq_len"] == 8


def test_pg_has_no_value_function_and_gets_a_module_without_one():
    _, policy, settings = only_policy(case_of("0.6.6/pg-tf-lstm"))
    network = read_policy(policy, settings).known
    assert "vf_preds" not in network.graph.outputs
    assert network.target.module == dense.ACTOR


def test_hard_gates_of_tensorflow_1_are_told():
    _, policy, settings = only_policy(case_of("0.8.7/ppo-tf-lstm-share"))
    reading = read_policy(policy, settings)
    network, findings = reading.known, reading.findings
    assert "hard sigmoid gates" in network.summary
    assert any(f.verdict is Verdict.DERIVED and "TensorFlow 1" in f.message for f in findings)


def test_an_lstm_that_ray_silently_left_out_is_told():
    _, policy, settings = only_policy(case_of("0.8.5/ppo-tf-lstm-prevar"))
    reading = read_policy(policy, settings)
    network, findings = reading.known, reading.findings
    assert network.kind == "fully connected"
    assert any("LSTM" in f.message and f.verdict is Verdict.NOTE for f in findings)


@pytest.mark.parametrize("name", ["ppo-torch-lstm-prev", "ppo-torch-lstm-cont-prev"])
def test_adam_goes_on_with_both_of_torchs_biases(name):
    checkpoint, policy, settings = only_policy(case_of(f"1.13.0/{name}"))
    network = read_policy(policy, settings).known
    states, findings = plan_optimizers(checkpoint.policies, {policy.policy_id: network})
    assert [f.verdict for f in findings] == [Verdict.EXACT]
    mean = states[policy.policy_id][DEFAULT].mean
    np.testing.assert_allclose(mean["lstm.bias"], mean["lstm.recurrent_bias"], atol=1e-7)


# Errors ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "wrong", "told"),
    [("lstm_cell_size", 99, "lstm_cell_size"), ("fcnet_hiddens", [9], "hidden layers")],
)
def test_a_config_of_another_checkpoint_is_refused(key, wrong, told):
    _, policy, settings = only_policy(case_of("2.0.1/ppo-torch-lstm"))
    settings = ModelSettings.from_config({"model": {**settings.model, key: wrong}}, {})
    with pytest.raises(CheckpointError, match=told):
        read_policy(policy, settings)


def test_previous_actions_that_the_config_does_not_ask_for_are_refused():
    _, policy, settings = only_policy(case_of("1.13.0/ppo-torch-lstm-prev"))
    model = {k: v for k, v in settings.model.items() if "prev" not in k}
    with pytest.raises(CheckpointError, match="beside its features"):
        read_policy(policy, ModelSettings.from_config({"model": model}, {}))


def test_arrays_of_something_else_are_refused_by_name():
    _, policy, settings = only_policy(case_of("2.0.1/ppo-torch-lstm"))
    more = {**policy.weights, "extra.weight": np.zeros(1)}
    with pytest.raises(NotYetError, match=r"extra\.weight"):
        read_policy(dataclasses.replace(policy, weights=more), settings)


def test_a_flat_vector_needs_its_spaces():
    _, policy, settings = only_policy(case_of("0.6.6/ppo-tf-lstm-noshare"))
    with pytest.raises(MissingInformationError):
        read_policy(dataclasses.replace(policy, action_space=None), settings)


def test_a_vector_of_another_length_is_refused():
    _, policy, settings = only_policy(case_of("0.6.6/ppo-tf-lstm-noshare"))
    with pytest.raises(CheckpointError, match="no LSTM"):
        read_policy(dataclasses.replace(policy, weights=policy.weights[:-1]), settings)


@pytest.mark.parametrize(
    ("space", "choices"),
    [
        (Discrete(3), (3,)),
        (MultiDiscrete((2, 3)), (2, 3)),
        (box(-1, 1, (2,)), (0, 0)),
        (TupleSpace((Discrete(2), box(-1, 1, (1,)))), (2, 0)),
    ],
)
def test_the_kernel_tells_whether_previous_actions_were_one_hot(space, choices):
    assert choices_of(space) == choices
    policy = PolicyState("p", {}, action_space=space)
    for parts in (choices, (0,) * len(choices)):
        size = 2 * sum(n or 1 for n in parts) + 1
        found = previous(Named(policy, ModelSettings(), {}, "keras"), 2, 1, size, raw_first=False)
        assert found.parts == parts
        assert found.inputs() == {"prev_actions": (2 * len(parts),), "prev_rewards": (1,)}
