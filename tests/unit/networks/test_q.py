"""Q-networks: every naming scheme, target networks, and the module that takes them."""

import copy
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rllib_compat.errors import CheckpointError, MissingInformationError, NotConvertibleError
from rllib_compat.networks import (
    DEFAULT,
    TARGET_PREFIX,
    Graph,
    ModelSettings,
    from_canonical,
    plan_optimizers,
    with_filter,
)
from rllib_compat.networks import read as read_policy
from rllib_compat.networks.families import q_head, q_names
from rllib_compat.networks.families.q_head import Head
from rllib_compat.networks.graph import Builder
from rllib_compat.networks.named import Named
from rllib_compat.networks.trunks.dense import DENSE
from rllib_compat.neutral import ObservationFilter, PolicyState, RunningStat, Verdict
from tests.legacy.cases import case_of
from tests.legacy.networks import only_policy, read
from tests.unit.networks.graphs import assert_torch_computes, online


def policy_of(name):
    """The only policy of a case, and what its config says of the network."""
    return only_policy(case_of(name))[1:]


def network_of(name):
    (network,) = read(case_of(name))[1].values()
    return network


def with_config(settings_, **changes):
    return ModelSettings.from_config(
        {**settings_.config, **changes}, {}, algorithm=settings_.algorithm, ray=settings_.ray
    )


@pytest.mark.parametrize(
    ("name", "is_default"),
    [
        ("1.13.0/dqn-torch-hiddens2", True),
        ("1.13.0/simpleq-tf-default", True),
        ("0.7.6/dqn-tf-small", True),
        ("0.8.5/dqn-torch-nohiddens", False),  # a linear layer below the head
        ("0.8.5/dqn-tf-nohiddens-dueling", False),  # likewise
        ("0.8.5/apex-tf-v-atoms", False),  # today's module centres distributions otherwise
        ("0.6.6/dqn-tf-rainbow", False),
        ("1.13.0/r2d2-torch-v-hiddens-noh", False),
    ],
)
def test_rays_own_module_takes_what_it_computes_exactly(name, is_default):
    assert (network_of(name).target.module is None) == is_default


def test_a_stored_target_network_stays_its_own():
    policy, _ = policy_of("0.8.7/dqn-tf-small")
    network = network_of("0.8.7/dqn-tf-small")
    stored = {k.removeprefix("default_policy/"): v for k, v in policy.weights.items()}
    for ours, theirs in (
        ("hidden.0.kernel", "fc_1_1/kernel"),
        ("out.kernel", "fc_out_1/kernel"),
        ("advantage_hidden.0.kernel", "hidden_0_1/kernel"),
        ("advantage.kernel", "dense_3/kernel"),
        ("state_hidden.0.bias", "dense_4/bias"),
        ("state.kernel", "dense_5/kernel"),
    ):
        np.testing.assert_array_equal(network.arrays[TARGET_PREFIX + ours], stored[theirs])
        assert not np.array_equal(network.arrays[ours], stored[theirs])


def test_torch_stored_no_target_network_and_the_report_says_so():
    policy, said = policy_of("1.13.0/dqn-torch-hiddens2")
    reading = read_policy(policy, said)
    network, findings = reading.known, reading.findings
    (told,) = [f for f in findings if f.rule == "target-network"]
    assert told.verdict is Verdict.DERIVED
    for name, array in online(network).items():
        np.testing.assert_array_equal(network.arrays[TARGET_PREFIX + name], array)


@pytest.mark.parametrize("name", ["0.8.7/dqn-tf-small", "1.13.0/dqn-torch-hiddens2"])
def test_value_branches_that_nothing_reads_are_told(name):
    assert all("value" in unused for unused in network_of(name).unused)
    assert network_of(name).unused


@given(shift=st.integers(1, 9), seed=st.integers(0, 99))
def test_layers_of_a_later_policy_are_found_by_their_order(shift, seed):
    """TensorFlow counts on over the policies of a process, and a dict may have any order."""
    policy, _ = policy_of("0.8.7/dqn-tf-small")
    names = [name.removeprefix("default_policy/") for name in policy.weights]
    later = {}
    for name in names:
        layer, part = name.split("/")
        base, _, number = layer.rpartition("_")
        if base in ("dense", "fc_1", "fc_out", "value_out", "hidden_0"):
            later[name] = f"{base}_{int(number) + shift}/{part}"
        else:
            later[name] = f"{layer}_{shift}/{part}"
    shuffled = np.random.default_rng(seed).permutation(list(later.values()))
    trunk = DENSE.tables["keras"]
    first = {m.theirs: m.ours for m in q_names.keras_names(names, trunk)[0]}
    second = {m.theirs: m.ours for m in q_names.keras_names(shuffled.tolist(), trunk)[0]}
    assert second == {later[theirs]: ours for theirs, ours in first.items()}


@pytest.mark.parametrize(
    "name",
    ["0.8.0/dqn-tf-rainbow", "0.8.7/dqn-tf-small", "1.13.0/dqn-torch-noisy-atoms-duel"],
)
def test_canonical_arrays_go_back_to_the_names_they_had(name):
    policy, _ = policy_of(name)
    network = network_of(name)
    stored = {k.removeprefix("default_policy/"): v for k, v in policy.weights.items()}
    own = {move.ours for move in network.names}
    again = from_canonical(network.names, {k: network.arrays[k] for k in own})
    assert again.keys() | set(network.unused) == stored.keys()
    for theirs, array in again.items():
        np.testing.assert_array_equal(array, stored[theirs])


def test_a_head_that_the_old_ray_lost_is_refused():
    policy, said = policy_of("0.8.5/dqn-tf-noisy")
    with pytest.raises(
        NotConvertibleError, match="noisy layers of the Q-head are not in this checkpoint"
    ):
        read_policy(policy, said)


def test_a_softmax_over_the_batch_is_refused():
    policy, said = policy_of("1.13.0/dqn-torch-hiddens2")
    with pytest.raises(NotConvertibleError, match="normalised over the batch"):
        read_policy(policy, with_config(said, num_atoms=2))


@pytest.mark.parametrize(
    "wrong",
    [
        {"dueling": False},
        {"hiddens": [24]},
        {"model": {"fcnet_hiddens": [16, 32]}},
    ],
)
def test_a_config_of_another_checkpoint_is_refused(wrong):
    policy, said = policy_of("1.13.0/dqn-torch-hiddens2")
    with pytest.raises(CheckpointError, match="the config"):
        read_policy(policy, with_config(said, **wrong))


def test_noisy_that_torch_ignored_is_told():
    policy, said = policy_of("0.8.5/dqn-torch-v-noisy-torch")
    findings = read_policy(policy, said).findings
    assert [f.verdict for f in findings if "ignored noisy=True" in f.message] == [Verdict.NOTE]


def test_a_flat_vector_needs_the_size_of_the_observations():
    policy, said = policy_of("0.7.6/dqn-tf-small")
    bare = copy.copy(policy)
    bare = replace(bare, observation_space=None, observation_filter=None)
    with pytest.raises(MissingInformationError, match="observations"):
        read_policy(bare, said)


def test_a_flat_vector_of_another_config_is_refused():
    policy, said = policy_of("0.7.6/dqn-tf-small")
    with pytest.raises(CheckpointError, match="fits no Q-network"):
        read_policy(policy, with_config(said, hiddens=[25]))


def test_the_number_of_actions_follows_from_a_flat_vector():
    policy, said = policy_of("0.6.6/dqn-tf-rainbow")
    bare = copy.copy(policy)
    bare = replace(bare, action_space=None)
    arrays = read_policy(bare, said).known.arrays
    for name, array in read_policy(policy, said).known.arrays.items():
        np.testing.assert_array_equal(arrays[name], array)


@pytest.mark.parametrize(
    ("name", "verdict", "steps"),
    [
        ("1.13.0/dqn-torch-hiddens2", Verdict.EXACT, 88),
        ("1.13.0/simpleq-tf-default", Verdict.DERIVED, 88),
        ("0.8.7/dqn-tf-small", Verdict.DERIVED, 64),
        ("2.40.0/dqn-torch_new-default", Verdict.EXACT, 88),  # its module has the target's arrays
    ],
)
def test_adam_goes_on_without_what_it_never_trained(name, verdict, steps):
    policy, _ = policy_of(name)
    network = network_of(name)
    states, findings = plan_optimizers({"p": policy}, {"p": network})
    assert [f.verdict for f in findings] == [verdict]
    state = states["p"][DEFAULT]
    assert state.step == steps
    assert state.mean.keys() == state.square.keys() == online(network).keys()


HEADS = st.builds(
    Head,
    hiddens=st.lists(st.integers(1, 6), min_size=1, max_size=2).map(tuple),
    dueling=st.booleans(),
    num_atoms=st.sampled_from([1, 2, 5]),
    v_min=st.just(-3.0),
    v_max=st.just(4.0),
    noisy=st.booleans(),
    norm=st.booleans(),
).filter(lambda head: not (head.noisy and head.norm))  # no Ray had both


def random_graph(head, scheme, seed, *, contrib):
    """A graph of some head on features of 4, for 3 actions, with random arrays."""
    rng = np.random.default_rng(seed)
    shapes = {}
    streams = [("advantage", 3 * head.num_atoms), ("state", head.num_atoms)]
    for stream, size in streams[: 1 + head.dueling]:
        width = 4
        layers = [(f"{stream}_hidden.{i}", n) for i, n in enumerate(head.hiddens)]
        for layer, out in [*layers, (stream, size)]:
            normed = head.norm and layer != stream
            shapes[f"{layer}.kernel"] = (width, out)
            if not (normed and contrib):
                shapes[f"{layer}.bias"] = (out,)
            if head.noisy:
                shapes[f"{layer}.sigma_kernel"] = (width, out)
                shapes[f"{layer}.sigma_bias"] = (out,)
            if normed:
                norm = layer.replace("_hidden", "_norm")
                shapes |= {f"{norm}.gamma": (out,), f"{norm}.beta": (out,)}
            width = out
    arrays = {name: rng.normal(size=shape) for name, shape in shapes.items()}
    build = Builder()
    named = Named(PolicyState("p", {}), ModelSettings(), arrays, scheme)
    outputs = q_head.add(build, named, "obs", head)
    return Graph({"obs": (4,)}, tuple(build.steps), outputs), arrays


@given(
    head=HEADS,
    scheme=st.sampled_from(["torch", "keras"]),
    contrib=st.booleans(),
    seed=st.integers(0, 2**16),
)
@settings(deadline=None, max_examples=50)
def test_torch_computes_every_head_as_numpy_does(head, scheme, contrib, seed):
    graph, arrays = random_graph(head, scheme, seed, contrib=contrib)
    obs = np.random.default_rng(seed).normal(size=(5, 4)).astype(np.float32)
    # A norm over one or two numbers divides by almost nothing.
    assert_torch_computes(graph, arrays, {"obs": obs}, 5e-3 if head.norm else 1e-4)


@pytest.mark.parametrize("name", ["0.8.5/apex-tf-v-atoms", "0.8.5/dqn-torch-nohiddens"])
def test_the_own_module_gives_the_learner_what_todays_module_gives(name):
    torch = pytest.importorskip("torch")
    import gymnasium as gym

    from rllib_compat.modules import QModule

    network = network_of(name)
    module = QModule(
        observation_space=gym.spaces.Box(-1, 1, network.inputs),
        action_space=gym.spaces.Discrete(2),
        inference_only=False,
        model_config={**network.target.model_config, "epsilon": 0.1},
    )
    module.make_target_networks()
    module.set_state(network.module_state())
    obs, following = torch.randn(2, 6, *network.inputs)
    out = module.forward_train({"obs": obs, "new_obs": following})
    expected = network.forward({"obs": obs.numpy()})["q_values"]
    np.testing.assert_allclose(out["qf_preds"].detach(), expected, atol=1e-5)
    expected_next = network.forward({"obs": following.numpy()})["q_values"]
    np.testing.assert_allclose(out["qf_next_preds"].detach(), expected_next, atol=1e-5)
    targets = {
        k.removeprefix(TARGET_PREFIX): v
        for k, v in network.arrays.items()
        if k.startswith(TARGET_PREFIX)
    }
    target = network.graph.evaluate(targets, {"obs": following.numpy()})["q_values"]
    np.testing.assert_allclose(out["qf_target_next_preds"].detach(), target, atol=1e-5)
    distributed = {"atoms", "qf_logits", "qf_probs", "qf_target_next_probs"}
    assert (distributed <= out.keys()) == ("q_logits" in network.graph.outputs)
    greedy = module.forward_inference({"obs": obs})["actions"]
    np.testing.assert_array_equal(greedy, expected.argmax(-1))


def test_actions_are_explored_where_q_values_are_zero_and_masked_ones_are_not():
    """Ray's own module takes 0.0 for a masked action, and dies where all of them are."""
    torch = pytest.importorskip("torch")
    import gymnasium as gym

    from rllib_compat.modules import QModule
    from rllib_compat.ray_versions import modules

    network = network_of("0.8.5/dqn-torch-nohiddens")
    module = QModule(
        observation_space=gym.spaces.Box(-1, 1, network.inputs),
        action_space=gym.spaces.Discrete(2),
        model_config={**network.target.model_config, "epsilon": 1.0},
    )
    modules.unmask_zero_q_values(module)
    module.set_state({k: np.zeros_like(v) for k, v in network.module_state().items()})
    batch = {"obs": torch.zeros(64, *network.inputs)}
    assert modules.q_values(module, batch).eq(0.0).all()
    assert set(module.forward_exploration(batch, t=0)["actions"].tolist()) == {0, 1}
    for masked in (-3.4e38, -np.inf):
        values = torch.tensor([[0.0, masked]] * 64)
        module.compute_q_values = lambda _, values=values: {"qf_preds": values}
        assert set(module.forward_exploration(batch, t=0)["actions"].tolist()) == {0}


@pytest.mark.parametrize("name", ["0.8.5/apex-tf-v-atoms", "1.13.0/dqn-torch-hiddens2"])
def test_a_filter_goes_before_network_and_target_network(name):
    network = network_of(name)
    stat = RunningStat(3, np.arange(4.0), np.full(4, 8.0))
    old = ObservationFilter("MeanStdFilter", clip=10.0, stats=(stat,))
    filtered = with_filter(network, old)
    obs = np.random.default_rng(0).normal(size=(5, 4))
    expected = network.forward({"obs": old(obs)})["q_values"]
    np.testing.assert_allclose(filtered.forward({"obs": obs})["q_values"], expected)
    own = online(filtered).keys()
    assert {TARGET_PREFIX + k for k in own} | own == filtered.arrays.keys()
    assert filtered.target.module == "rllib_compat.modules:QModule"
    assert filtered.target.model_config["num_atoms"] == network.target.model_config["num_atoms"]
