"""Networks with attention (GTrXL)."""

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rllib_compat.errors import CheckpointError, NotYetError
from rllib_compat.networks import ModelSettings, plan_optimizers
from rllib_compat.networks import read as read_policy
from rllib_compat.networks.families.attention import CONSTANT, ordered
from rllib_compat.networks.ops import in_numpy, in_torch
from rllib_compat.neutral import Verdict
from tests.legacy.cases import all_cases
from tests.legacy.networks import only_policy

ATTENTION = [c for c in all_cases() if "attention" in c.variant]
SIZES = st.integers(1, 4)


def attention_arrays(rng, size, heads, head):
    """Arrays of one attention step."""
    shapes = {"gamma": (size,), "beta": (size,), "u": (heads, head), "v": (heads, head)}
    shapes |= {"qkv": (size, 3 * heads * head), "pos": (size, heads * head)}
    shapes["out"] = (heads * head, size)
    return {name: rng.normal(size=shape) for name, shape in shapes.items()}


@given(seed=st.integers(0, 99), sizes=st.tuples(SIZES, SIZES, SIZES, SIZES, SIZES, SIZES))
def test_torch_computes_the_attention_that_numpy_computes(seed, sizes):
    batch, steps, memory, half, heads, head = sizes
    size, rng = 2 * half, np.random.default_rng(seed)
    own = attention_arrays(rng, size, heads, head)
    values = [rng.normal(size=(batch, steps, size)), rng.normal(size=(batch, memory, size))]
    settings = {"epsilon": 1e-3}
    out, states = in_numpy.relative_attention(own, settings, *values)
    theirs, their_states = in_torch.relative_attention(
        {k: torch.from_numpy(v) for k, v in own.items()},
        settings,
        *map(torch.from_numpy, values),
    )
    np.testing.assert_allclose(theirs, out, atol=1e-9)
    np.testing.assert_array_equal(their_states["memory"], states["memory"])
    assert states["memory"].shape == values[1].shape


@given(seed=st.integers(0, 99), size=SIZES)
def test_torch_computes_the_gate_that_numpy_computes(seed, size):
    rng = np.random.default_rng(seed)
    names = ("w_r", "w_z", "w_h", "u_r", "u_z", "u_h")
    own = {name: rng.normal(size=(size, size)) for name in names} | {
        "bias_z": rng.normal(size=size)
    }
    values = [rng.normal(size=(2, 3, size)) for _ in range(2)]
    theirs = in_torch.gru_gate(
        {k: torch.from_numpy(v) for k, v in own.items()}, {}, *map(torch.from_numpy, values)
    )
    np.testing.assert_allclose(theirs, in_numpy.gru_gate(own, {}, *values), atol=1e-12)


def test_no_step_sees_a_later_one():
    rng = np.random.default_rng(0)
    own = attention_arrays(rng, 4, 2, 3)
    x, memory = rng.normal(size=(1, 5, 4)), rng.normal(size=(1, 2, 4))
    changed = x.copy()
    changed[:, 3:, 0] += 1  # of all numbers alike, a layer norm takes no notice
    before, after = (
        in_numpy.relative_attention(own, {"epsilon": 1e-5}, seen, memory)[0]
        for seen in (x, changed)
    )
    np.testing.assert_allclose(before[:, :3], after[:, :3])
    assert not np.allclose(before[:, 3:], after[:, 3:])


def test_the_memory_is_what_came_last_oldest_first():
    own = attention_arrays(np.random.default_rng(0), 2, 1, 1)
    x, memory = np.arange(4.0).reshape(1, 2, 2), np.full((1, 3, 2), -1.0)
    _, states = in_numpy.relative_attention(own, {"epsilon": 1e-5}, x, memory)
    np.testing.assert_array_equal(states["memory"], [[[-1, -1], [0, 1], [2, 3]]])


def test_the_counters_of_keras_become_ranks():
    names = ["dense_7/kernel", "dense_11/kernel", "mha_1/relative_multi_head_attention_4/dense_8/b"]
    names += ["mha_1/relative_multi_head_attention_4/dense_10/b", "fc_1/kernel", "Variable_1"]
    assert list(ordered(names).values()) == [
        "dense.0/kernel",
        "dense.1/kernel",
        "mha.0/relative_multi_head_attention.0/dense.0/b",
        "mha.0/relative_multi_head_attention.0/dense.1/b",
        "fc_1/kernel",
        "Variable.0",
    ]


@pytest.mark.parametrize("case", ATTENTION, ids=str)
def test_the_memory_has_the_length_of_acting(case):
    _, policy, settings = only_policy(case)
    model = {**settings.model, "attention_memory_training": 7}  # which no Ray read
    reading = read_policy(policy, ModelSettings.from_config({"model": model}, {}))
    assert reading.known.graph.inputs["memory_0"] == (5, 16)
    assert not reading.findings


@pytest.mark.parametrize("case", ATTENTION, ids=str)
def test_adam_goes_on_and_constants_are_no_weights(case):
    checkpoint, policy, settings = only_policy(case)
    network = read_policy(policy, settings).known
    _, findings = plan_optimizers(checkpoint.policies, {policy.policy_id: network})
    assert findings[0].verdict in (Verdict.EXACT, Verdict.DERIVED)
    assert not any(CONSTANT.fullmatch(name) for name in network.unused)


@pytest.mark.parametrize("key", ["attention_dim", "attention_num_heads"])
def test_a_config_of_another_checkpoint_is_refused(key):
    _, policy, settings = only_policy(ATTENTION[0])
    with pytest.raises(CheckpointError, match=key):
        read_policy(policy, ModelSettings.from_config({"model": {**settings.model, key: 99}}, {}))


def test_arrays_of_something_else_are_refused_by_name():
    _, policy, settings = only_policy(ATTENTION[0])
    more = {**policy.weights, f"{policy.policy_id}/extra/kernel": np.zeros(1)}
    with pytest.raises(NotYetError, match="extra"):
        read_policy(dataclasses.replace(policy, weights=more), settings)
