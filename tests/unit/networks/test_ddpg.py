"""DDPG's, TD3's and APEX_DDPG's networks, whatever the Ray that wrote them called their arrays."""

import dataclasses
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rllib_compat import Given
from rllib_compat.conversion import complete_checkpoint
from rllib_compat.errors import CheckpointError, MissingInformationError, NotYetError
from rllib_compat.formats import read_checkpoint
from rllib_compat.networks import (
    TARGET_PREFIX,
    ModelSettings,
    draw_network,
    from_canonical,
    plan_optimizers,
)
from rllib_compat.networks import read as read_policy
from rllib_compat.neutral import PolicyState, Verdict
from rllib_compat.neutral.spaces import box, parse_repr
from tests.legacy.cases import find
from tests.legacy.networks import read
from tests.unit.networks.graphs import assert_torch_computes, online, random_inputs

FAMILY = ("DDPG", "TD3", "APEX_DDPG")
HIDDENS = st.lists(st.integers(1, 4), min_size=1, max_size=3)


def only(**wanted):
    """The checkpoint, policy and network of the one case that is as wanted."""
    (found,) = find(algorithm=FAMILY, **wanted)
    checkpoint, networks = read(found)
    ((policy_id, network),) = networks.items()
    return checkpoint, checkpoint.policies[policy_id], network


def keras_policy(seed=0, *, actor=(4, 3), critic=(5,), actions=2, twin=True, norm=False):
    """A policy as Ray 0.8.5 – 2.x on TensorFlow stored it, and what its config says."""
    rng = np.random.default_rng(seed)
    names = [f"actor_hidden_{i}" for i in range(len(actor))] + ["actor_out"]
    sizes = dict(zip(names, zip((3, *actor), (*actor, actions), strict=True), strict=True))
    for n, q in enumerate(("q", "twin_q")[: 1 + twin]):
        layers = [f"sequential_{n}/{q}_hidden_{i}" for i in range(len(critic))]
        layers += [f"sequential_{n}/{q}_out"]
        pairs = zip((3 + actions, *critic), (*critic, 1), strict=True)
        sizes |= dict(zip(layers, pairs, strict=True))
    weights = {}
    for target in (False, True):
        for name, (rows, columns) in sizes.items():
            name = name.replace("sequential_", "sequential_1") if target else name
            name = f"p/{name}_1" if target and "/" not in name else f"p/{name}"
            weights[f"{name}/kernel"] = rng.normal(size=(rows, columns))
            weights[f"{name}/bias"] = rng.normal(size=columns)
    if norm:
        for i, size in enumerate(actor):
            weights[f"p/LayerNorm_{i}/gamma"] = rng.normal(size=size)
            weights[f"p/LayerNorm_{i}/beta"] = rng.normal(size=size)
    config = {
        "actor_hiddens": list(actor),
        "critic_hiddens": list(critic),
        "actor_hidden_activation": "tanh",
        "twin_q": twin,
    }
    space = box(np.full(actions, -2, np.float32), np.full(actions, 3, np.float32))
    return PolicyState("p", weights, action_space=space), config


def identified(policy, config, algorithm="DDPG"):
    reading = read_policy(policy, ModelSettings.from_config(config, {}, algorithm=algorithm))
    return reading.known, reading.findings


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 99), actor=HIDDENS, critic=HIDDENS, norm=st.booleans())
def test_the_torch_module_computes_what_the_proof_computes(seed, actor, critic, norm):
    network, _ = identified(*keras_policy(seed, actor=actor, critic=critic, norm=norm))
    batch = random_inputs(network, np.random.default_rng(seed))
    assert_torch_computes(network.graph, online(network), batch)


@given(seed=st.integers(0, 99), low=st.floats(-9, 9), size=st.floats(0.1, 9))
def test_actions_are_within_the_range_of_the_action_space(seed, low, size):
    policy, config = keras_policy(seed)
    policy = replace(policy, action_space=box(low, low + size, (2,)))
    network, _ = identified(policy, config)
    obs = 100 * np.random.default_rng(seed).normal(size=(9, 3))
    actions = network.forward({"obs": obs, "actions": np.zeros((9, 2))})["actions"]
    assert (actions >= low - 1e-4).all()
    assert (actions <= low + size + 1e-4).all()


def test_arrays_can_be_given_their_old_names_again():
    policy, config = keras_policy()
    network, _ = identified(policy, config)
    for name, array in from_canonical(network.names, network.arrays).items():
        np.testing.assert_array_equal(array, policy.weights[f"p/{name}"])


def test_target_networks_are_carried_where_they_are_stored_and_else_copied():
    policy, config = keras_policy(twin=False)
    network, findings = identified(policy, config)
    assert not findings
    stored = network.arrays["target.pi.out.kernel"]
    np.testing.assert_array_equal(stored, policy.weights["p/actor_out_1/kernel"])
    followed = online(network).keys()
    assert network.arrays.keys() - followed == {TARGET_PREFIX + name for name in followed}

    _, policy, network = only(ray="0.8.7", framework="torch")
    for name in ("pi.out.kernel", "q.out.bias", "twin_q.hidden.0.kernel"):
        np.testing.assert_array_equal(network.arrays[TARGET_PREFIX + name], network.arrays[name])


@pytest.mark.parametrize("ray", ["0.5.3", "0.6.6", "0.8.0"])
def test_target_networks_of_old_scopes_follow_the_layers_of_the_same_names(ray):
    _, policy, network = only(ray=ray, framework="tf")
    targets = [name for name in policy.weights if "/target_" in name]
    assert len(targets) == sum(name.startswith(TARGET_PREFIX) for name in network.arrays)
    for name in targets:
        own = policy.weights[name.replace("target_", "")]
        assert policy.weights[name].shape == own.shape
        assert np.abs(policy.weights[name] - own).max() < 1.0


@pytest.mark.parametrize("ray", ["0.8.7", "2.0.1"])
def test_both_optimizers_go_on(ray):
    _, policy, network = only(ray=ray, framework="torch")
    states = plan_optimizers({"p": policy}, {"p": network})[0]["p"]
    assert states.keys() == {"actor", "critic"}
    for name, stacks in (("actor", ("pi.",)), ("critic", ("q.", "twin_q."))):
        own = {k: v.shape for k, v in network.arrays.items() if k.startswith(stacks)}
        assert {k: v.shape for k, v in states[name].square.items()} == own


def test_a_new_network_has_the_arrays_that_an_old_one_with_its_config_had():
    config = {"actor_hiddens": [4, 3], "critic_hiddens": [5], "twin_q": True}
    seen, acts = box(-1, 1, (3,)), box(-2, 3, (2,))

    def new(**more):
        settings = ModelSettings.of_module({**config, **more}, "DDPG")
        return draw_network(settings, seen, acts, np.random.default_rng(0))

    made = new()
    old, _ = identified(*keras_policy())
    assert {k: v.shape for k, v in made.arrays.items()} == {
        k: v.shape for k, v in old.arrays.items()
    }
    features = new(use_state_preprocessor=True)
    assert features.arrays["state.hidden.1.kernel"].shape == (256, 256)


def test_the_range_that_torch_stored_goes_before_the_action_space():
    checkpoint, policy, network = only(ray="2.0.1", framework="torch")
    other = dataclasses.replace(policy, action_space=box(-7, 7, (1,)))
    again = read_policy(other, ModelSettings.of(checkpoint, policy)).known
    assert again.graph == network.graph


def test_ray_06_took_the_sigmoid_and_later_ones_that_of_twice_the_number():
    factors = {}
    for ray in ("0.5.3", "0.6.6", "0.8.0"):
        *_, network = only(ray=ray, framework="tf")
        (step,) = (s for s in network.graph.steps if s.op == "squash")
        factors[ray] = step.settings["factor"]
    assert factors == {"0.5.3": 1.0, "0.6.6": 1.0, "0.8.0": 2.0}


def test_a_twin_that_ray_did_not_save_is_told():
    checkpoint, policy, network = only(ray="0.8.0", framework="tf")
    findings = read_policy(policy, ModelSettings.of(checkpoint, policy)).findings
    assert [f.verdict for f in findings] == [Verdict.ABSENT]
    assert "twin" in findings[0].message
    assert "twin_q_values" not in network.graph.outputs


def test_actions_without_bounds_are_not_squashed():
    policy, config = keras_policy()
    policy = replace(policy, action_space=box(-np.inf, np.inf, (2,)))
    network, _ = identified(policy, config)
    assert not [step for step in network.graph.steps if step.op == "squash"]


@pytest.mark.parametrize(
    ("space", "words"),
    [
        (None, "range of the actions"),
        (box(np.array([-1, -np.inf]), np.array([1, np.inf])), "bounds of each dimension"),
        (parse_repr("Box(2,)"), "Old gym printed no bounds"),
        (parse_repr("Box(-2.0, 3.0, (2,), float32)"), "Old gym printed no bounds"),
    ],
    ids=["none", "some", "without bounds", "bounds of all"],
)
def test_a_range_that_is_not_known_is_asked_for(space, words):
    policy, config = keras_policy()
    policy = replace(policy, action_space=space)
    with pytest.raises(MissingInformationError, match=words):
        identified(policy, config)


@pytest.mark.parametrize("text", ["Box([-2, 0], [2, 1], (2,))", "Box(-2, 3, (2,))"])
def test_bounds_that_somebody_gives_for_each_dimension_are_taken(text):
    policy, config = keras_policy()
    policy = dataclasses.replace(policy, action_space=parse_repr(text))
    network, _ = identified(policy, config)
    (step,) = (s for s in network.graph.steps if s.op == "squash")
    assert step.settings["low"] == policy.action_space.low.tolist()
    assert step.settings["range"] == (policy.action_space.high - policy.action_space.low).tolist()


def test_actions_of_a_real_policy_are_refused_without_their_bounds_and_exact_with_them():
    (case,) = find(ray="0.8.5", algorithm="DDPG", variant="asym2")
    checkpoint = read_checkpoint(case.checkpoint)
    (policy,) = checkpoint.policies.values()
    expected = case.expected()
    for text, exact in (
        ("Box(2,)", False),
        ("Box(-2.0, 2.0, (2,), float32)", False),
        ("Box([-2. 0.], [2. 1.], (2,), float32)", True),
    ):
        told = Given(algorithm="DDPG", action_spaces={None: parse_repr(text)})
        done = complete_checkpoint(read_checkpoint(case.checkpoint), told)
        (policy,) = done.policies.values()
        if not exact:
            with pytest.raises(MissingInformationError, match="range of the actions"):
                read_policy(policy, ModelSettings.of(done, policy))
            continue
        network = read_policy(policy, ModelSettings.of(done, policy)).known
        inputs = {"obs": expected.inputs, "actions": np.zeros((len(expected.inputs), 2))}
        np.testing.assert_allclose(
            network.forward(inputs)["actions"], expected.arrays["action"], atol=1e-5
        )


def test_a_config_of_another_checkpoint_is_refused():
    policy, config = keras_policy()
    with pytest.raises(CheckpointError, match=r"actor_hiddens=\[4, 3\].* the config \[9\]"):
        identified(policy, {**config, "actor_hiddens": [9]})


def test_an_observation_space_of_another_size_is_refused():
    policy, config = keras_policy()
    policy = replace(policy, observation_space=box(-1, 1, (4,)))
    with pytest.raises(CheckpointError, match="3 inputs"):
        identified(policy, config)


def test_an_array_that_no_network_has_is_refused():
    policy, config = keras_policy()
    policy.weights["p/lstm/kernel"] = np.zeros((1, 1))
    with pytest.raises(NotYetError, match="lstm"):
        identified(policy, config)


def test_a_list_without_names_is_the_same_network():
    policy, config = keras_policy()
    network, _ = identified(policy, config)
    first = list(policy.weights.values())[: len(policy.weights) // 2]
    policy = replace(policy, weights=first)
    again, (finding,) = identified(policy, config)
    assert "target networks are not stored" in finding.message
    for name, array in online(network).items():
        np.testing.assert_array_equal(again.arrays[name], array)
    policy = replace(policy, weights=policy.weights[:-1])
    with pytest.raises(NotYetError, match="unnamed arrays"):
        identified(policy, config)


def test_a_space_as_old_gym_printed_it_gets_the_bounds_of_its_environment():
    (case,) = find(ray="0.8.5", algorithm="APEX_DDPG")
    checkpoint = read_checkpoint(case.checkpoint)
    checkpoint = complete_checkpoint(
        checkpoint, Given(algorithm="APEX_DDPG", action_spaces={None: parse_repr("Box(1,)")})
    )
    space = checkpoint.policies["default_policy"].action_space
    assert (space.low.tolist(), space.high.tolist()) == ([-2.0], [2.0])
    assert any("bounds" in finding.message for finding in checkpoint.findings)
