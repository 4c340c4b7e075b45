"""SAC's networks, whatever the Ray that wrote them called their arrays."""

import dataclasses
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rllib_compat.errors import CheckpointError, MissingInformationError, NotYetError
from rllib_compat.networks import ModelSettings, from_canonical, plan_optimizers, with_filter
from rllib_compat.networks import read as read_policy
from rllib_compat.neutral import ObservationFilter, PolicyState, RunningStat, Verdict
from rllib_compat.neutral.spaces import Discrete, TupleSpace, box
from tests.legacy.cases import find
from tests.legacy.networks import read
from tests.unit.networks.graphs import assert_torch_computes, online, random_inputs

HIDDENS = st.lists(st.integers(1, 4), max_size=3)
PENDULUM = {"observation_space": box(-8, 8, (3,)), "action_space": box(-2, 2, (1,))}


def case(**wanted):
    (found,) = find(algorithm="SAC", **wanted)
    return found


def only(loaded):
    """The checkpoint, policy and network of a case with one policy."""
    checkpoint, networks = loaded
    (policy_id,) = networks
    return checkpoint, checkpoint.policies[policy_id], networks[policy_id]


def stack(rng, sizes, name, out):
    arrays = {}
    layers = [name.format(i) for i in range(len(sizes) - 2)] + [out]
    for i, layer in enumerate(layers):
        arrays[f"{layer}.weight"] = rng.normal(size=(sizes[i + 1], sizes[i]))
        arrays[f"{layer}.bias"] = rng.normal(size=sizes[i + 1])
    return arrays


def torch_policy(seed=0, *, hiddens=(4, 3), q_hiddens=(5,), actions=2, twin=True, discrete=False):
    """A policy as Ray 2.x on torch stored it, and what its config says."""
    rng = np.random.default_rng(seed)
    layer, logits = "{}._hidden_layers.{{}}._model.0", "{}._logits._model.0"
    pi = (3, *hiddens, actions if discrete else 2 * actions)
    weights = {"log_alpha": np.array([0.5]), "target_entropy": np.array([-1.0])}
    weights |= stack(rng, pi, layer.format("action_model"), logits.format("action_model"))
    critic = (3, *q_hiddens, actions) if discrete else (3 + actions, *q_hiddens, 1)
    for name in ("q_net", "twin_q_net")[: 1 + twin]:
        weights |= stack(rng, critic, layer.format(name), logits.format(name))
        weights[f"{name}._value_branch._model.0.weight"] = rng.normal(size=(1, 5))
    config = {
        "policy_model_config": {"fcnet_hiddens": list(hiddens), "fcnet_activation": "tanh"},
        "q_model_config": {"fcnet_hiddens": list(q_hiddens), "fcnet_activation": "elu"},
        "twin_q": twin,
    }
    space = Discrete(actions) if discrete else box(-1, 1, (actions,))
    policy = PolicyState("p", weights, observation_space=box(-1, 1, (3,)), action_space=space)
    return policy, config


def identified(policy, config, algorithm="SAC"):
    reading = read_policy(policy, ModelSettings.from_config(config, {}, algorithm=algorithm))
    return reading.known, reading.findings


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 99), hiddens=HIDDENS, q_hiddens=HIDDENS, discrete=st.booleans())
def test_the_torch_module_computes_what_the_proof_computes(seed, hiddens, q_hiddens, discrete):
    policy, config = torch_policy(seed, hiddens=hiddens, q_hiddens=q_hiddens, discrete=discrete)
    network, _ = identified(policy, config)
    batch = random_inputs(network, np.random.default_rng(seed))
    assert_torch_computes(network.graph, online(network), batch)


@given(twin=st.booleans(), discrete=st.booleans())
def test_arrays_can_be_given_their_old_names_again(twin, discrete):
    policy, config = torch_policy(twin=twin, discrete=discrete)
    network, _ = identified(policy, config)
    # Two eras of torch share the table; a name of either is one of that array.
    again = from_canonical(tuple(reversed(network.names)), online(network))
    assert len(again) == len(online(network))
    for name, array in again.items():
        np.testing.assert_array_equal(array, policy.weights[name])


@pytest.mark.parametrize("twin", [True, False])
def test_a_single_critic_has_no_twin_and_targets_start_as_copies(twin):
    network, findings = identified(*torch_policy(twin=twin))
    assert ("twin_q_values" in network.graph.outputs) == twin
    assert [f.verdict for f in findings] == [Verdict.DERIVED]
    np.testing.assert_array_equal(
        network.arrays["target.q.out.kernel"], network.arrays["q.out.kernel"]
    )


def test_targets_that_are_stored_are_taken():
    _, _, network = only(read(case(ray="1.13.0", framework="tf", variant="cont")))
    target, own = (network.arrays[f"{t}q.hidden.0.kernel"] for t in ("target.", ""))
    assert np.abs(target - own).max() > 1e-6


def test_the_numbers_that_keras_counts_say_nothing():
    checkpoint, policy, network = only(read(case(ray="0.8.5", framework="tf", variant="small")))
    later = {}
    for name, array in policy.weights.items():
        head, _, rest = name.partition("/sequential")
        number, slash, layer = rest.partition("/")
        if slash:
            name = f"{head}/sequential_{int(number[1:] or 0) + 6}/{layer}"
        later[name] = array
    policy = replace(policy, weights=later)
    again = read_policy(policy, ModelSettings.of(checkpoint, policy)).known
    for name, array in network.arrays.items():
        np.testing.assert_array_equal(again.arrays[name], array)


@pytest.mark.parametrize(
    "case_", find(algorithm="SAC", framework="tf", ray=("0.8.5", "1.0.1", "1.13.0")), ids=str
)
def test_a_list_without_names_is_the_same_network(case_):
    # TF2 stored the online network's variables in the same order.
    checkpoint, policy, network = only(read(case_))
    names = [name.rpartition("/")[2] for name in policy.weights]
    end = names.index("log_alpha") + 1
    policy = replace(policy, weights=list(policy.weights.values())[:end])
    again = read_policy(policy, ModelSettings.of(checkpoint, policy)).known
    assert again.graph == network.graph
    assert again.target.model_config["distribution"] == network.target.model_config["distribution"]
    for name, array in online(network).items():
        np.testing.assert_array_equal(again.arrays[name], array)


@pytest.mark.parametrize(
    ("wanted", "temperature"),
    [
        ({"ray": "0.8.7", "framework": "torch"}, False),
        ({"ray": "2.0.1"}, True),
        ({"ray": "1.0.1"}, True),
    ],
    ids=str,
)
def test_the_temperature_is_found_or_told_to_be_missing(wanted, temperature):
    checkpoint, policy, _ = only(read(case(**wanted)))
    reading = read_policy(policy, ModelSettings.of(checkpoint, policy))
    assert ("log_alpha" in reading.state) == temperature
    told = [f for f in reading.findings if f.rule == "temperature"]
    assert bool(told) != temperature


def test_the_first_sac_squashed_twice_into_the_range_of_the_environment():
    pytest.importorskip("ray")
    torch = pytest.importorskip("torch")
    from rllib_compat.modules import squashed_gaussian

    old = case(ray="0.7.6")
    _, _, network = only(read(old))
    arrays = old.expected().arrays
    told = dict(network.target.model_config["distribution"])
    assert told.pop("kind") == "squashed"
    logits = network.forward({"obs": arrays["obs_in"], "actions": arrays["q_actions"]})
    found = squashed_gaussian(**told).from_logits(torch.tensor(logits["action_dist_inputs"]))
    mean = found.to_deterministic().sample()
    np.testing.assert_allclose(mean, arrays["action"], atol=1e-5)
    samples = found.sample()
    assert (samples.abs() <= 2).all()
    # Probabilities are of what was sampled: squashing and its reverse agree.
    np.testing.assert_allclose(found._squash(found._unsquash(samples)), samples, atol=1e-4)


def test_the_first_sac_made_deviations_with_softplus():
    _, _, network = only(read(case(ray="0.7.6")))
    raw = dataclasses.replace(network.graph, outputs={"raw": "pi.out", "made": "log_std"}).evaluate(
        network.arrays, {"obs": np.ones((1, 3)), "actions": np.zeros((1, 1))}
    )
    std = np.log1p(np.exp(np.clip(raw["raw"][0, 1], -20, 2))) + 1e-5
    np.testing.assert_allclose(np.exp(raw["made"][0, 1]), std)


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"policy_model_config": {"fcnet_hiddens": [9]}}, CheckpointError, r"hidden layers \[4, 3"),
        ({"_use_beta_distribution": True}, NotYetError, "Beta"),
    ],
    ids=["other hiddens", "Beta"],
)
def test_a_config_that_the_weights_contradict_is_refused(changes, error, words):
    policy, config = torch_policy()
    with pytest.raises(error, match=words):
        identified(policy, {**config, **changes})


def test_an_array_that_no_network_has_is_refused():
    policy, config = torch_policy()
    policy.weights["action_model.lstm.weight"] = np.zeros((1, 1))
    with pytest.raises(NotYetError, match="lstm"):
        identified(policy, config)


def test_an_observation_space_of_another_size_is_refused():
    policy, config = torch_policy()
    policy = replace(policy, observation_space=TupleSpace((box(-1, 1, (3,)), Discrete(2))))
    with pytest.raises(CheckpointError, match="3 inputs"):
        identified(policy, config)


def test_a_vector_needs_the_sizes_of_both_spaces():
    checkpoint, policy, _ = only(read(case(ray="0.7.6")))
    told = ModelSettings.of(checkpoint, policy)
    for missing in PENDULUM:
        lacking = dataclasses.replace(policy, **{**PENDULUM, missing: None})
        with pytest.raises(MissingInformationError, match="to cut it"):
            read_policy(lacking, told)
    longer = dataclasses.replace(policy, **PENDULUM, weights=np.append(policy.weights, 1))
    with pytest.raises(CheckpointError, match="3352 numbers"):
        read_policy(longer, told)


@pytest.mark.parametrize("normalized", [True, False])
def test_actions_that_were_not_normalized_are_not_squashed(normalized):
    policy, config = torch_policy()
    network, _ = identified(policy, {**config, "normalize_actions": normalized})
    kind = network.target.model_config["distribution"]["kind"]
    assert kind == ("squashed" if normalized else "normal")


def test_each_of_four_optimizers_goes_over():
    for wanted in ({"ray": "0.8.7", "framework": "torch"}, {"ray": "2.0.1"}, {"ray": "2.40.0"}):
        _, policy, network = only(read(case(**wanted)))
        states, (finding,) = plan_optimizers({"p": policy}, {"p": network})
        assert finding.verdict is Verdict.EXACT
        assert list(states["p"]) == ["policy", "qf", "qf_twin", "alpha"]
        critic = states["p"]["qf"].mean
        assert {k: v.shape for k, v in critic.items()} == {
            k: v.shape for k, v in network.arrays.items() if k.startswith("q.")
        }


def test_optimizers_of_another_number_start_anew_and_say_why():
    _, policy, network = only(read(case(ray="2.0.1")))
    policy = replace(policy, optimizer=policy.optimizer[:3])
    states, (finding,) = plan_optimizers({"p": policy}, {"p": network})
    assert not states
    assert finding.verdict is Verdict.RESET
    assert "3 optimizers" in finding.message


def test_cql_has_the_same_networks_in_a_module_of_its_own():
    policy, config = torch_policy()
    sac, _ = identified(policy, config)
    cql, _ = identified(policy, {**config, "num_actions": 4}, algorithm="CQL")
    assert cql.graph == sac.graph
    assert cql.target.module.endswith(":CQLModule")
    assert cql.target.model_config["num_actions"] == 4


def test_the_lagrange_multiplier_of_cql_and_its_optimizer_are_told_and_left():
    checkpoint, policy, _ = only(read(case(ray="2.0.1")))
    policy.weights["log_alpha_prime"] = np.zeros(1)
    policy = replace(policy, optimizer=[*policy.optimizer, policy.optimizer[-1]])
    told = dataclasses.replace(ModelSettings.of(checkpoint, policy), algorithm="CQL")
    network = read_policy(policy, told).known
    assert "log_alpha_prime" in network.unused
    states, _ = plan_optimizers({"p": policy}, {"p": network})
    assert list(states["p"]) == ["policy", "qf", "qf_twin", "alpha"]


def image_policy(*, discrete):
    """A policy for images as Ray 2.0 on torch stored it: continuous critics lack a layer."""
    rng = np.random.default_rng(0)
    shapes = {
        "_convs.0._model.1.weight": (2, 1, 3, 3),
        "_convs.0._model.1.bias": (2,),
        "_convs.1._model.0.weight": (3, 2, 5, 5),
        "_convs.1._model.0.bias": (3,),
    }
    policy = {**shapes, "_logits._model.0.weight": (4, 3, 1, 1), "_logits._model.0.bias": (4,)}
    critic = policy
    if not discrete:
        critic = {f"cnn_0.{name}": shape for name, shape in shapes.items()}
        critic |= {"logits_layer._model.0.weight": (1, 3 + 7), "logits_layer._model.0.bias": (1,)}
        critic |= {"value_layer._model.0.weight": (1, 3 + 7), "value_layer._model.0.bias": (1,)}
    models = {"action_model": policy, "q_net": critic, "twin_q_net": critic}
    weights = {"log_alpha": np.zeros(1), "target_entropy": np.zeros(1)}
    for module, arrays in models.items():
        weights |= {f"{module}.{k}": rng.normal(size=shape) for k, shape in arrays.items()}
        if discrete:
            weights[f"{module}._value_branch._model.0.weight"] = rng.normal(size=(1, 3))
    model = {"conv_filters": [[2, [3, 3], 2], [3, [5, 5], 1]], "fcnet_hiddens": [7]}
    config = {"policy_model_config": model, "q_model_config": model}
    space = Discrete(4) if discrete else box(-1, 1, (2,))
    seen = box(0, 1, (10, 10, 1))
    return PolicyState("p", weights, observation_space=seen, action_space=space), config


def test_discrete_actions_of_images_have_convolutions_in_every_stack():
    policy, config = image_policy(discrete=True)
    network, _ = identified(policy, config)
    images = np.random.default_rng(1).uniform(size=(5, 10, 10, 1))
    out = network.forward({"obs": images})
    assert {name: array.shape for name, array in out.items()} == {
        "action_dist_inputs": (5, 4),
        "q_values": (5, 4),
        "twin_q_values": (5, 4),
    }
    assert not np.allclose(out["q_values"], out["twin_q_values"])
    assert all("_value_branch" in name for name in network.unused)
    assert f"target.{next(k for k in network.arrays if k.startswith('q.'))}" in network.arrays


def test_a_policy_goes_over_alone_where_ray_did_not_save_its_critics():
    network, findings = identified(*image_policy(discrete=False))
    assert list(network.graph.outputs) == ["action_dist_inputs"]
    told = next(f for f in findings if f.verdict is Verdict.ABSENT)
    assert "not in the checkpoint" in told.message
    assert not [name for name in network.arrays if name.startswith(("q.", "target."))]
    assert any(name.startswith("q_net.") for name in network.unused)


def test_targets_take_filtered_observations_too():
    policy, config = torch_policy(discrete=True)
    network, _ = identified(policy, config)
    stat = RunningStat(10, np.ones(3), np.full(3, 20.0))
    held = with_filter(network, ObservationFilter("MeanStdFilter", stats=(stat,)))
    for part in ("mean", "std"):
        own, target = (held.arrays[f"{prefix}filter.{part}"] for prefix in ("", "target."))
        np.testing.assert_array_equal(own, target)
