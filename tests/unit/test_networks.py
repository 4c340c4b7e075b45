"""What an old network computes, in numpy alone, against what it computed when it was alive."""

import numpy as np
import pytest

from rllib_compat.errors import CheckpointError, MissingInformationError, NotYetError
from rllib_compat.networks import ModelSettings, from_canonical, to_canonical
from rllib_compat.networks import read as read_policy
from rllib_compat.networks.families.dense import SCHEMES, fold_slopes, network_of
from rllib_compat.networks.mapping import Name, keras, require_same_names
from rllib_compat.networks.named import Named
from rllib_compat.networks.unnamed import Shape
from rllib_compat.neutral import PolicyState
from rllib_compat.neutral.spaces import Box, parse_repr
from tests.legacy.cases import find

PPO = find(algorithm="PPO")


def is_fully_connected(case):
    names = str([p.get("weights") for p in case.about["policies"].values()])
    custom = "custom_model" in str(case.about.get("user_config"))
    signs = ("lstm", "conv", "gtrxl", "attention", "rnn")
    return not custom and not any(sign in names.lower() for sign in signs)


FULLY_CONNECTED = [case for case in PPO if is_fully_connected(case)]
OTHERS = [case for case in PPO if not is_fully_connected(case)]


def test_the_museum_has_every_era_of_the_network():
    assert len(FULLY_CONNECTED) > 100
    assert {c.framework for c in FULLY_CONNECTED} == {"tf", "tf2", "torch"}
    assert len({c.ray for c in FULLY_CONNECTED}) >= 15


def random_network(hiddens, *, own_value, free_log_std=False, inputs=3, means=2, seed=0):
    rng = np.random.default_rng(seed)
    arrays = {}

    def stack(prefix, last, size):
        before = inputs
        for i, hidden in enumerate(hiddens):
            arrays[f"{prefix}.{i}.kernel"] = rng.normal(size=(before, hidden))
            arrays[f"{prefix}.{i}.bias"] = rng.normal(size=hidden)
            before = hidden
        arrays[f"{last}.kernel"] = rng.normal(size=(before, size))
        arrays[f"{last}.bias"] = rng.normal(size=size)

    stack("hidden", "logits", means)
    stack("value_hidden" if own_value else "hidden", "value", 1)
    if not own_value:
        stack("hidden", "logits", means)
    if free_log_std:
        arrays["log_std.value"] = rng.normal(size=means)
    return {k: v.astype(np.float32) for k, v in arrays.items()}


@pytest.mark.parametrize("own_value", [True, False])
@pytest.mark.parametrize("free_log_std", [True, False])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_weights_come_back_the_same_from_every_naming_scheme(scheme, own_value, free_log_std):
    if ("shared" in scheme) == own_value and scheme.startswith("rl_module"):
        own_value = not own_value
    if scheme == "marwil":  # it had one layer of values, and no option for anything else
        own_value = free_log_std = False
    arrays = random_network([4, 5], own_value=own_value, free_log_std=free_log_std)
    back, left = to_canonical(SCHEMES[scheme], from_canonical(SCHEMES[scheme], arrays))
    assert left == []
    assert back.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(back[name], array)


@pytest.mark.parametrize(
    ("family", "name", "index"),
    [
        ("fc_out/kernel", "fc_out/kernel", 0),
        ("fc_{i+1}/kernel", "fc_1/kernel", 0),
        ("fc_{i+1}/kernel", "fc_0/kernel", None),
        ("mlp.{2*i}.weight", "mlp.4.weight", 2),
        ("mlp.{2*i}.weight", "mlp.3.weight", None),
        ("fc_{i+1}/kernel", "fc_value_1/kernel", None),
    ],
)
def test_a_family_of_names_finds_its_members_only(family, name, index):
    assert Name(family).index_of(name) == index
    if index is not None:
        assert Name(family).at(index) == name


def test_a_weight_that_no_network_has_is_an_error_and_not_left_out():
    weights = from_canonical(SCHEMES["torch"], random_network([4], own_value=True))
    weights["_extra.weight"] = np.zeros(3, np.float32)
    with pytest.raises(NotYetError, match="_extra"):
        read_policy(PolicyState("p", weights), ModelSettings())


def test_a_missing_weight_is_an_error():
    weights = from_canonical(SCHEMES["torch"], random_network([4], own_value=True))
    del weights["_logits._model.0.bias"]
    with pytest.raises(CheckpointError, match=r"missing: logits\.bias"):
        read_policy(PolicyState("p", weights), ModelSettings())


def test_a_config_of_another_run_is_an_error_and_not_a_wrong_activation():
    weights = from_canonical(SCHEMES["torch"], random_network([4], own_value=True))
    with pytest.raises(CheckpointError, match="hidden layers"):
        read_policy(PolicyState("p", weights), ModelSettings(hiddens=(64, 64)))


def test_a_space_of_another_environment_is_an_error():
    weights = from_canonical(SCHEMES["torch"], random_network([4], own_value=True))
    policy = PolicyState("p", weights, action_space=parse_repr("Discrete(7)"))
    with pytest.raises(CheckpointError, match="action space"):
        read_policy(policy, ModelSettings())


def test_a_flat_vector_asks_for_the_observation_space():
    with pytest.raises(MissingInformationError, match="observation"):
        read_policy(PolicyState("p", np.zeros(50, np.float32)), ModelSettings(hiddens=(4,)))


def test_the_scalars_in_a_flat_vector_tell_which_order_it_has():
    arrays = random_network([4], own_value=True, means=2)
    policy = [n for n in arrays if n.startswith(("hidden", "logits"))]
    value = [n for n in arrays if n.startswith("value")]
    kl = np.float32([0.2 * 1.5 * 1.5 * 0.5])
    for order in ([*policy, "kl", *value], [*policy, *value, "kl"]):
        vector = np.concatenate([kl if n == "kl" else arrays[n].ravel() for n in order])
        state = PolicyState("p", vector, observation_space=parse_repr("Box(3,)"))
        reading = read_policy(state, ModelSettings(hiddens=(4,)))
        for name, array in arrays.items():
            np.testing.assert_array_equal(reading.network.arrays[name], array)
        assert reading.state["kl_coeff"] == pytest.approx(0.225)


def test_keras_orders_layers_by_their_distance_from_the_outputs():
    own = Shape(3, (4, 4), 2, shares_layers=False, free_log_std=False).keras_order()
    assert own == ["hidden.0", "value_hidden.0", "hidden.1", "value_hidden.1", "logits", "value"]
    free = Shape(3, (4, 4), 2, shares_layers=False, free_log_std=True).keras_order()
    assert free == ["hidden.0", "hidden.1", "value_hidden.0", "logits", "value_hidden.1", "value"]


@pytest.mark.parametrize("own_value", [True, False])
def test_trained_slopes_of_swish_fold_into_the_weights(own_value):
    arrays = random_network([4, 5], own_value=own_value)
    slopes = {"hidden.0.beta": 1.3, "hidden.1.beta": 0.7}
    if own_value:
        slopes |= {"value_hidden.0.beta": 1.1, "value_hidden.1.beta": 0.9}
    with_slopes = arrays | {k: np.float32([v]) for k, v in slopes.items()}
    settings = ModelSettings(activation="swish")
    arrays_of = fold_slopes(with_slopes, where="")
    folded = network_of(Named(PolicyState("p", {}), settings, arrays_of, "torch"))
    x = np.random.default_rng(1).normal(size=(7, 3))

    def stack(prefix):
        y = x
        for i in range(2):
            y = y @ arrays[f"{prefix}.{i}.kernel"] + arrays[f"{prefix}.{i}.bias"]
            y = y / (1 + np.exp(-slopes[f"{prefix}.{i}.beta"] * y))
        return y

    logits = stack("hidden") @ arrays["logits.kernel"] + arrays["logits.bias"]
    hidden = stack("value_hidden" if own_value else "hidden")
    values = (hidden @ arrays["value.kernel"] + arrays["value.bias"])[:, 0]
    outputs = folded.forward({"obs": x})
    np.testing.assert_allclose(outputs["action_dist_inputs"], logits, rtol=1e-6)
    np.testing.assert_allclose(outputs["vf_preds"], values, rtol=1e-6)


def test_a_slope_of_zero_is_refused_and_not_divided_by():
    arrays = random_network([4], own_value=False) | {"hidden.0.beta": np.float32([0.0])}
    with pytest.raises(NotYetError, match="slope"):
        fold_slopes(arrays, where="")


def test_the_config_tells_the_network_with_the_policys_own_overrides_on_top():
    config = {"model": {"fcnet_hiddens": [8], "fcnet_activation": "relu"}, "vf_share_layers": True}
    settings = ModelSettings.from_config(config, {"model": {"fcnet_hiddens": [4, 4]}})
    assert settings.hiddens == (4, 4)
    assert settings.activation == "relu"
    assert settings.shares_layers


def test_a_flat_vector_of_a_network_for_images_asks_for_the_action_space():
    image = Box(np.zeros((4, 4, 3), np.uint8), np.full((4, 4, 3), 255, np.uint8), "uint8")
    policy = PolicyState("p", np.zeros(99, np.float32), observation_space=image)
    with pytest.raises(MissingInformationError, match="action space"):
        read_policy(policy, ModelSettings(hiddens=(4,)))


@pytest.mark.parametrize(
    ("found", "said"), [("a", "missing: b"), ("abc", "not expected: c"), ("ac", "missing: b; not")]
)
def test_arrays_that_are_missing_or_too_many_are_an_error(found, said):
    with pytest.raises(CheckpointError, match=said):
        require_same_names(found, "ab", where="policies.p")


def test_an_array_that_the_target_has_no_place_for_is_an_error_and_not_dropped():
    table = keras("fc_{i+1}", "hidden.{i}")
    arrays = {"hidden.0.kernel": np.zeros((2, 3)), "hidden.0.scale": np.zeros(3)}
    with pytest.raises(CheckpointError, match=r"no place for the array 'hidden\.0\.scale'"):
        from_canonical(table, arrays)
