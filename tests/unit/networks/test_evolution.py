"""Policies of ES and ARS, and the filter that a module written alone holds."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rllib_compat.errors import CheckpointError, MissingInformationError
from rllib_compat.networks import ModelSettings, can_hold, with_filter
from rllib_compat.networks import read as read_policy
from rllib_compat.neutral import ObservationFilter, PolicyState, RunningStat, spaces
from tests.legacy.cases import find
from tests.legacy.networks import read
from tests.unit.networks.dense import policy_rows, torch_names, value_rows, vector_of
from tests.unit.networks.graphs import assert_torch_computes

BOX = spaces.box(-np.inf, np.inf, (4,))
EVOLUTION = [*find(algorithm="ES"), *find(algorithm="ARS")]


def policy(weights, action_space=None):
    return PolicyState(
        "default_policy",
        weights,
        observation_space=BOX,
        action_space=action_space or spaces.Discrete(2),
    )


def settings(ray="1.13.0", algorithm="ES", **config):
    config = {"model": {"fcnet_hiddens": [3, 5]}, **config}
    return ModelSettings.from_config(config, {}, algorithm=algorithm, ray=ray)


@pytest.mark.parametrize("shares_layers", [True, False])
def test_torch_kept_the_arrays_by_sorted_names_and_the_value_function_is_told_not_carried(
    shares_layers,
):
    rows = policy_rows() | value_rows(shares_layers=shares_layers)
    _, arrays = vector_of(rows, np.random.default_rng(0))
    named = torch_names(arrays)
    vector = np.concatenate([named[name].reshape(-1) for name in sorted(named)])
    network = read_policy(policy(vector), settings(framework="torch")).known
    assert all(np.array_equal(network.arrays[name], arrays[name]) for name in network.arrays)
    assert {name for name in arrays if name.startswith("value")} == set(arrays) - set(
        network.arrays
    )
    assert set(network.unused) == {name for name in named if "value" in name}


def test_tensorflow_kept_only_what_the_actions_depend_on():
    vector = np.arange(sum(np.prod(s) for s in policy_rows().values()), dtype=float)
    network = read_policy(policy(vector), settings(framework="tf")).known
    assert network.unused == ()
    assert network.arrays["hidden.0.kernel"][0, 0] == 0
    assert network.arrays["logits.bias"][-1] == vector[-1]


def test_a_box_action_is_the_output_itself():
    vector, _ = vector_of(policy_rows(), np.random.default_rng(0))
    reading = read_policy(
        policy(vector, spaces.box(-1, 1, (2,))), settings(framework="tf", action_noise_std=0.5)
    )
    network, findings = reading.known, reading.findings
    out = network.forward({"obs": np.ones((1, 4))})
    assert out["actions"].shape == (1, 2)
    assert "action_noise_std=0.5" in findings[-1].message


@pytest.mark.parametrize(
    ("algorithm", "config", "hiddens"),
    [
        ("ES", {}, (256, 256)),
        ("ARS", {}, ()),
        ("ARS", {"policy_type": "MLPPolicy", "fcnet_hiddens": [7]}, (7,)),
    ],
)
def test_ray_0_5_did_not_look_at_the_model_config(algorithm, config, hiddens):
    vector, _ = vector_of(policy_rows(hiddens), np.random.default_rng(0))
    reading = read_policy(policy(vector), settings("0.5", algorithm, **config))
    network, findings = reading.known, reading.findings
    assert network.summary.startswith("fc " + "-".join(map(str, [4, *hiddens, 2])) + " tanh")
    assert "normalised" in findings[0].message, "the filter was not stored, which has to be told"


@pytest.mark.parametrize(
    ("algorithm", "hiddens", "fix"),
    [("ES", (), "--algorithm ARS"), ("ARS", (7,), '"policy_type": "MLPPolicy"')],
)
def test_a_vector_of_ray_0_5_that_does_not_fit_says_what_decides_its_layers(
    algorithm, hiddens, fix
):
    vector, _ = vector_of(policy_rows(hiddens), np.random.default_rng(0))
    with pytest.raises(CheckpointError) as raised:
        read_policy(policy(vector), settings("0.5", algorithm))
    assert fix in raised.value.fix


def test_a_vector_that_fits_nothing_and_a_size_that_is_not_known_are_errors():
    with pytest.raises(CheckpointError, match="fits no"):
        read_policy(policy(np.zeros(11)), settings())
    with pytest.raises(MissingInformationError, match="observation"):
        read_policy(replace(policy(np.zeros(11)), observation_space=None), settings())


@pytest.mark.parametrize("case", EVOLUTION, ids=str)
def test_with_its_filter_a_network_acts_the_same_on_raw_observations(case):
    checkpoint, networks = read(case)
    (network,) = networks.values()
    (old,) = (p.observation_filter for p in checkpoint.policies.values())
    if not can_hold(network, old):
        assert checkpoint.source.ray_version == "0.5" or old is None or not old.stats
        return
    held = with_filter(network, old)
    rng = np.random.default_rng(0)
    raw = old.stats[0].mean + old.stats[0].std * rng.normal(size=(20, *network.inputs))
    expected = network.forward({"obs": old(raw)})
    computed = held.forward({"obs": raw})
    for name, theirs in expected.items():
        np.testing.assert_allclose(computed[name], theirs, atol=1e-9)


@given(
    demean=st.booleans(),
    destd=st.booleans(),
    clip=st.none() | st.floats(0.5, 5),
    count=st.integers(0, 3),
    seed=st.integers(0, 99),
)
def test_the_step_is_what_the_filter_was(demean, destd, clip, count, seed):
    rng = np.random.default_rng(seed)
    stat = RunningStat(count, rng.normal(size=4), rng.uniform(0.1, 1, size=4))
    old = ObservationFilter("MeanStdFilter", demean, destd, clip, [stat])
    vector, _ = vector_of(policy_rows(), rng)
    network = read_policy(policy(vector), settings(framework="tf")).known
    raw = rng.normal(size=(5, 4))
    held = with_filter(network, old).forward({"obs": raw})
    np.testing.assert_allclose(
        held["action_dist_inputs"], network.forward({"obs": old(raw)})["action_dist_inputs"]
    )


def test_the_module_holds_the_filter_as_constants_and_computes_as_the_network():
    rng = np.random.default_rng(1)
    stat = RunningStat(9, rng.normal(size=4), rng.uniform(1, 2, size=4))
    old = ObservationFilter("MeanStdFilter", stats=(stat,))
    vector, _ = vector_of(policy_rows(), rng)
    network = read_policy(policy(vector), settings(framework="tf")).known
    network = with_filter(network, old)
    shapes = {name: list(array.shape) for name, array in network.arrays.items()}
    assert network.target.model_config["shapes"] == shapes
    batch = {"obs": rng.normal(size=(5, 4))}
    net = assert_torch_computes(network.graph, network.arrays, batch, tolerance=1e-5)
    assert not any(name.startswith("filter") for name, _ in net.named_parameters())
