"""What actor-critic algorithms had besides PPO's network: target networks, scalars, no values."""

from dataclasses import replace

import numpy as np
import pytest

from rllib_compat.errors import CheckpointError, MissingInformationError
from rllib_compat.networks import ModelSettings
from rllib_compat.networks import read as read_policy
from rllib_compat.neutral import PolicyState, spaces
from tests.legacy.cases import find
from tests.legacy.networks import read
from tests.unit.networks.dense import policy_rows, value_rows
from tests.unit.networks.dense import vector_of as drawn

BOX, DISCRETE = spaces.box(-np.inf, np.inf, (4,)), spaces.Discrete(2)


def policy(weights, **more):
    return PolicyState(
        "default_policy", weights, observation_space=BOX, action_space=DISCRETE, **more
    )


def settings(algorithm, **config):
    config = {"model": {"fcnet_hiddens": [3, 5]}, **config}
    return ModelSettings.from_config(config, {}, algorithm=algorithm, ray="0.7.6")


def arrays_of(shares_layers=True, seed=0):
    rng = np.random.default_rng(seed)
    rows = policy_rows(), value_rows(shares_layers=shares_layers)
    return [drawn(each, rng)[1] for each in rows]


def vector_of(*parts):
    return np.concatenate([np.asarray(a, float).reshape(-1) for part in parts for a in part])


@pytest.mark.parametrize("algorithm", ["A2C", "A3C", "IMPALA", "APPO", "MARWIL", "PPO", "DDPPO"])
def test_a_vector_is_cut_with_the_value_layers_that_are_the_algorithms_default(algorithm):
    own_layers = algorithm in ("PPO", "DDPPO")
    actor, critic = arrays_of(shares_layers=not own_layers)
    last = [0.2] if own_layers else []
    network = read_policy(
        policy(vector_of(actor.values(), critic.values(), last)), settings(algorithm, kl_coeff=0.2)
    ).known
    for name, array in {**actor, **critic}.items():
        assert np.array_equal(network.arrays[name], array)


@pytest.mark.parametrize("copied", [True, False])
def test_the_target_network_of_a_vector_is_read_or_starts_as_a_copy(copied):
    actor, critic = arrays_of()
    other, _ = arrays_of(seed=1)
    parts = [actor.values(), critic.values(), *([other.values()] if copied else [])]
    reading = read_policy(policy(vector_of(*parts)), settings("APPO", vtrace=True))
    network, findings = reading.known, reading.findings
    for name, array in actor.items():
        expected = other[name] if copied else array
        assert np.array_equal(network.arrays[f"target.{name}"], expected)
    assert any(f.rule == "target-network" for f in findings) is not copied


def test_the_copies_that_tensorflow_numbered_become_the_target_network():
    (case,) = find(ray="0.8.5", algorithm="APPO")
    checkpoint, networks = read(case)
    weights = checkpoint.policies["default_policy"].weights
    network = networks["default_policy"]
    assert np.array_equal(
        network.arrays["target.hidden.0.kernel"], weights["default_policy/fc_1_1/kernel"]
    )
    state = network.module_state()
    assert np.array_equal(
        state["_old_encoder.encoder.net.mlp.0.weight"].T, weights["default_policy/fc_1_1/kernel"]
    )


def test_marwils_running_mean_is_found_in_a_vector_and_among_names():
    actor, critic = arrays_of()
    found = policy(vector_of(actor.values(), critic.values(), [98.5]))
    mean = "moving_average_of_advantage_norm"
    assert read_policy(found, settings("MARWIL")).state[mean] == pytest.approx(98.5)

    layers = {"hidden.0": "p_func/fc1", "hidden.1": "p_func/fc2", "logits": "p_func/fc_out"}
    named = {
        f"default_policy/{theirs}/{part}": actor[f"{ours}.{part}"]
        for ours, theirs in layers.items()
        for part in ("kernel", "bias")
    }
    named["default_policy/v_func/value/w"] = critic["value.kernel"]
    named["default_policy/v_func/value/b"] = critic["value.bias"]
    found = policy({**named, f"default_policy/{mean}": np.asarray(97.0)})
    reading = read_policy(found, settings("MARWIL"))
    assert reading.state[mean] == 97.0
    assert np.array_equal(reading.network.arrays["value.kernel"], critic["value.kernel"])


def test_bc_loses_its_value_function_and_says_so():
    (case,) = find(algorithm="BC", ray="2.0.1")
    network = read(case)[1]["default_policy"]
    assert set(network.graph.outputs) == {"action_dist_inputs"}
    assert set(network.unused) == {
        "_value_branch._model.0.weight",
        "_value_branch._model.0.bias",
    }
    assert network.target.module is None


@pytest.mark.parametrize(("encoder", "head"), [("encoder", "pi"), ("_encoder", "_pi_head")])
def test_todays_bc_is_read_from_either_releases_names(encoder, head):
    actor, _ = arrays_of()
    weights = {
        f"{encoder}.net.mlp.0.weight": actor["hidden.0.kernel"].T,
        f"{encoder}.net.mlp.0.bias": actor["hidden.0.bias"],
        f"{encoder}.net.mlp.2.weight": actor["hidden.1.kernel"].T,
        f"{encoder}.net.mlp.2.bias": actor["hidden.1.bias"],
        f"{head}.net.mlp.0.weight": actor["logits.kernel"].T,
        f"{head}.net.mlp.0.bias": actor["logits.bias"],
    }
    network = read_policy(policy(weights), settings("BC")).known
    assert all(np.array_equal(network.arrays[name], actor[name]) for name in actor)


def test_a_vector_of_pg_has_no_value_function():
    actor, _ = arrays_of()
    network = read_policy(policy(vector_of(actor.values())), settings("PG")).known
    assert set(network.arrays) == set(actor)
    with pytest.raises(CheckpointError, match="fits no policy"):
        read_policy(policy(np.zeros(9)), settings("PG"))
    with pytest.raises(MissingInformationError, match="both spaces"):
        read_policy(replace(policy(np.zeros(9)), action_space=None), settings("PG"))


@pytest.mark.parametrize("algorithm", ["PG", "APPO"])
def test_what_a_conversion_wrote_is_read_again(algorithm):
    actor, critic = arrays_of()
    network = read_policy(
        policy(vector_of(actor.values(), critic.values() if algorithm == "APPO" else [])),
        settings(algorithm),
    ).known
    if network.target.module is None:
        state = network.module_state()
        again = read_policy(policy(state), settings(algorithm)).known
    else:
        module, _, cls = network.target.module.partition(":")
        written = policy(
            network.module_state(),
            policy_class=f"{module}.{cls}",
            extra={"module_config": dict(network.target.model_config)},
        )
        again = read_policy(written, settings(algorithm)).known
    obs = {"obs": np.random.default_rng(0).normal(size=(5, 4))}
    for name, theirs in network.forward(obs).items():
        np.testing.assert_allclose(again.forward(obs)[name], theirs, atol=1e-6)


def test_a_converted_module_with_an_operation_that_is_not_known_is_refused():
    graph = {
        "inputs": {"obs": [4]},
        "steps": [{"op": "exec", "name": "x", "takes": ["obs"], "settings": {}}],
        "outputs": {},
        "states": {},
    }
    written = policy(
        {},
        policy_class="rllib_compat.modules.ActorModule",
        extra={"module_config": {"graph": graph, "shapes": {}}},
    )
    with pytest.raises(CheckpointError, match="unknown operations: exec"):
        read_policy(written, settings("PG"))
    with pytest.raises(CheckpointError, match="damaged"):
        read_policy(replace(written, extra={}), settings("PG"))
