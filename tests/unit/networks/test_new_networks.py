"""New networks against those that real old Rays made of the same configs."""

import contextlib
import json
import random
import re
import zlib
from functools import cache
from pathlib import Path

import gymnasium
import numpy as np
import pytest

pytest.importorskip("ray")

import torch
from ray.rllib.utils.torch_utils import update_target_network

from rllib_compat import registry, translate
from rllib_compat.algorithms import use_legacy_networks
from rllib_compat.errors import ConfigError
from rllib_compat.modules import ConfiguredModule
from rllib_compat.networks import (
    ModelSettings,
    ModuleNetwork,
    draw_network,
    draw_policy,
    fresh,
    read,
)
from rllib_compat.networks.modules import configured
from rllib_compat.networks.modules.configured import NETWORK, network_of
from rllib_compat.neutral import PolicyState, spaces
from rllib_compat.neutral.spaces import Discrete, box
from rllib_compat.ray_versions import configs, modules
from rllib_compat.trainer import defaults_of
from rllib_compat.trainer.defaults import merge
from tests.legacy.new_networks import cases
from tests.marks import OTHERS_WARNINGS, marked

pytestmark = OTHERS_WARNINGS

HERE = Path(cases.__file__).parent
ON_TENSORFLOW = "1.13.0-tf"
RAYS = sorted(file.stem for file in HERE.glob("*.json") if file.stem != ON_TENSORFLOW)
ALL = cases.cases()

#: So many numbers are enough to tell by what they were drawn.
MANY = 200

#: What torch's policies kept of the bounds of actions.
BOUNDS = r"(.*\.)?(low_action|action_range)"

#: Cases whose network has dense layers for each part of what it observes, beside images.
IN_PARTS = [
    name
    for name, (_, seen, _, config) in ALL.items()
    if seen in ("camera", "cameras", "cameras_within", "tables", "table", "bits")
    and (not name.startswith("DDPG") or config.get("use_state_preprocessor"))
    and config.get("model", {}).get("fcnet_hiddens") != []
]

#: What a Ray made by mistake, or of observations that are others today: it is not compared.
UNLIKE = {
    "0.8.5": {
        "torch's Q-networks lacked layers, distributions and noise that TensorFlow's had": (
            "DQN plain",
            "DQN no-hiddens",
            "DQN atoms",
            "DQN atoms-dueling",
            "DQN noisy",
            "DQN image84",
            "DQN filters",
            "DQN filters-no-hiddens",
            "DQN filters-no-layers",
            "DQN filters-not-one-pixel",
            "DQN no-hiddens-no-layers",
            "DQN no-hiddens-dueling",
            "DQN atoms-no-hiddens",
            "DQN noisy-atoms",
            "DQN noisy-no-hiddens",
        ),
        "torch ignored no_final_linear for images": (
            *("PPO filters-no-final-linear", "PPO filters-no-final-linear-share"),
            *("ES filters-no-final-linear", "ARS filters-no-final-linear"),
        ),
        "SAC saw images as vectors": ("SAC of-camera", "SAC of-camera-discrete"),
        "MultiDiscrete observations were the bare numbers": ("PPO of-several", "PPO of-nested"),
    },
    "1.0.1": {
        "an LSTM was made, and asked without states in the loss": ("DQN lstm",),
        "Q-values depended on the batch": ("DQN atoms-dueling", "DQN atoms-no-hiddens"),
        "a state's value without layers was made, and not used": ("DQN no-hiddens-dueling",),
        "noisy layers were not saved": (*("DQN noisy", "DQN noisy-atoms", "DQN noisy-no-hiddens"),),
        "Q-networks did not need one pixel": ("DQN filters-not-one-pixel",),
        "SAC's layers for images were in no optimizer": (
            *("SAC filters-discrete", "SAC filters", "SAC of-camera", "SAC of-camera-discrete"),
        ),
        "MultiDiscrete observations were the bare numbers": (
            *("PPO of-several", "PPO of-nested", "PPO lstm-of-nested"),
        ),
        "the slope of swish was trained": ("PPO filters-swish",),
    },
    "1.13.0": {
        "the key was gone, and ignored": ("PPO lstm-steps-before-until-1.1",),
        "the dense layers of parts, and of what is no vector, were neither saved nor trained": (
            *IN_PARTS,
            *("SAC of-dict", "SAC of-tuple", "SAC of-discrete", "SAC filters", "CQL filters"),
        ),
        "the slope of swish was trained": ("PPO filters-swish",),
        "the weights of noisy layers were all the same": (
            *("DQN noisy", "DQN noisy-atoms", "DQN noisy-no-hiddens"),
        ),
    },
}


@cache
def recorded(ray):
    return json.loads((HERE / f"{ray}.json").read_text())


def told(ray, name):
    """Settings and spaces of a case."""
    ray, framework = ray.removesuffix("-tf"), "tf" if ray.endswith("-tf") else "torch"
    algorithm, seen, acts, config = ALL[name]
    both = {**merge(defaults_of(algorithm, ray), config), "framework": framework}
    settings = ModelSettings.from_config(fresh.of_networks(both), {}, algorithm=algorithm, ray=ray)
    made = (cases.space(told, gymnasium.spaces) for told in (seen, acts))
    return settings, *map(spaces.from_object, made)


def made(name, shape):
    """The weights and inputs that `record.py` made."""
    drawn = np.random.RandomState(zlib.crc32(name.encode())).standard_normal(shape)
    scale = 1 / np.sqrt(np.prod(shape[1:])) if len(shape) > 1 else 0.1
    return (drawn * scale).astype(np.float32)


def built(ray):
    """The cases of a Ray whose networks `networks.fresh` makes."""
    cases_of = recorded(ray).items()
    made = (name for name, found in cases_of if "weights" in found)
    return [name for name in made if fresh.makes(ALL[name][0], ALL[name][3])]


def refused(ray):
    """The cases that a Ray refused because their filters end in more than one pixel."""
    found = recorded(ray).items()
    return [name for name, case in found if "do not result in" in case.get("error", "")]


def of_each(names):
    unlike = {ray: {name for rows in UNLIKE[ray].values() for name in rows} for ray in RAYS}
    return [(ray, name) for ray in RAYS for name in names(ray) if name not in unlike[ray]]


def alive(ray, name):
    """The arrays of a case that its network computes with: name → shape."""
    weights = recorded(ray)[name]["weights"]
    value = r"_value_branch(_separate)?\.|value_layer\."  # in a part of the network, or a critic
    if name.startswith(("DQN", "R2D2", "SimpleQ", "SAC", "CQL", "DDPG", "TD3")):
        dead = rf"(.*\.)?({value}).*|log_alpha|target_entropy|{BOUNDS}"
    else:
        dead = rf".+\.({value}).*"
        wrapped = {"lstm.bias_ih_l0", "gtrxl.linear_layer._model.0.bias"} & weights.keys()
        dead += r"|_value_branch_separate\..*" if wrapped else ""
    slope = r"|.*\._beta|.*\.inverse_freq"  # of swish, which is not trained; a constant
    return {k: shape for k, shape in weights.items() if not re.fullmatch(dead + slope, k)}


@pytest.mark.parametrize(("ray", "name"), of_each(built))
def test_a_new_network_has_the_layers_that_the_old_one_had(ray, name):
    policy = draw_policy(*told(ray, name), np.random.default_rng(3))
    then, now = alive(ray, name), {key: array.shape for key, array in policy.weights.items()}
    assert sizes(now) == sizes(then)


def sizes(shapes):
    """How large arrays are, whatever they are called; a 1 × 1 convolution is a dense layer."""
    return sorted(tuple(size for size in shape if size != 1) for shape in shapes.values())


@pytest.mark.parametrize(("ray", "name"), of_each(built))
def test_first_weights_are_as_large_as_they_were(ray, name):
    policy = draw_policy(*told(ray, name), np.random.default_rng(3))
    for key in alive(ray, name).keys() & policy.weights.keys():
        array = policy.weights[key]
        lengths = np.sqrt(np.square(array.reshape(len(array), -1)).sum(axis=1))
        length, spread, largest, deviation = recorded(ray)[name]["first"].get(key, (0, 0, 0, 0))
        alike = array.ndim == 2 and spread < 1e-3 * length  # convolutions' never are
        if deviation == 0 or (alike and round(length, 3) in (1, 0.01)):
            assert lengths == pytest.approx(length, rel=1e-3, abs=1e-6), key
        elif array.size >= MANY:
            assert array.std() == pytest.approx(deviation, rel=0.15), key
            assert np.abs(array).max() == pytest.approx(largest, rel=0.1), key


@pytest.mark.parametrize(("ray", "name"), of_each(built))
def test_a_new_network_with_old_weights_computes_what_the_old_one_did(ray, name):
    settings, seen, acts = told(ray, name)
    then = recorded(ray)[name]
    shapes = {k: tuple(v) for k, v in then["weights"].items() if not re.fullmatch(BOUNDS, k)}
    weights = {key: made(key, shape) for key, shape in shapes.items()}
    old = read(PolicyState("old", weights, observation_space=seen, action_space=acts), settings)
    new = draw_network(settings, seen, acts, np.random.default_rng(3))
    assert new.graph == old.known.graph
    if "outputs" not in then:
        return
    inputs = inputs_of(old.known)
    out = old.known.forward(inputs)
    if "actions" in then["outputs"]:
        for key, value in then["outputs"].items():
            np.testing.assert_allclose(out[key].reshape(np.shape(value)), value, atol=1e-5)
        return
    logits, values = (np.asarray(then["outputs"][key]) for key in ("logits", "values"))
    np.testing.assert_allclose(out["action_dist_inputs"].reshape(logits.shape), logits, atol=1e-5)
    if "vf_preds" in out:
        np.testing.assert_allclose(out["vf_preds"].reshape(-1), values, atol=1e-5)


def inputs_of(network):
    """The made inputs of two items; the action before is the first of its choices, or zeros."""
    graph = network.graph
    lead = (2, 1) if graph.states else (2,)
    found = {name: np.zeros((2, *shape)) for name, shape in graph.inputs.items()}
    found["obs"] = made("inputs", (2, *graph.inputs["obs"]))
    if "actions" in found:
        found["actions"] = made("actions", (2, *graph.inputs["actions"]))
    if "prev_rewards" in found:
        count = graph.inputs["prev_rewards"][0]
        found["prev_rewards"] = made("rewards", (2, count) if count > 1 else (2,)).reshape(2, count)
    return {
        name: array if name in graph.states else array.reshape(*lead, *array.shape[1:])
        for name, array in found.items()
    }


@pytest.mark.parametrize(("ray", "name"), of_each(refused))
def test_filters_that_do_not_fit_are_refused_as_they_were(ray, name):
    with pytest.raises(ConfigError, match="conv_filters"):
        draw_network(*told(ray, name), np.random.default_rng(3))


def of_tensorflow(name):
    """A new network for TensorFlow, and the one that Ray 1.13.0 made there with made weights."""
    settings, seen, acts = told(ON_TENSORFLOW, name)
    shapes = recorded(ON_TENSORFLOW)[name]["weights"].items()
    weights = {key: made(key, tuple(shape)) for key, shape in shapes}
    policy = PolicyState("default_policy", weights, observation_space=seen, action_space=acts)
    return draw_network(settings, seen, acts, np.random.default_rng(3)), read(policy, settings)


# keras' names do not tell SAC's critics of several parts from those of one vector.
@pytest.mark.parametrize("name", [n for n in built(ON_TENSORFLOW) if not n.startswith("SAC of")])
def test_a_new_network_for_tensorflow_has_the_layers_that_it_had(name):
    new, old = of_tensorflow(name)
    then, now = (
        {key: array.shape for key, array in network.arrays.items() if "target" not in key}
        for network in (new, old.known)
    )
    assert sorted(map(squeezed, now.values())) == sorted(map(squeezed, then.values()))


def squeezed(shape):
    """The sizes of an array, without those that are 1."""
    return sorted(size for size in shape if size != 1)


@pytest.mark.parametrize("name", [n for n in built(ON_TENSORFLOW) if n.startswith("PPO")])
def test_a_new_network_for_tensorflow_computes_what_it_did(name):
    new, old = of_tensorflow(name)
    then = recorded(ON_TENSORFLOW)[name]["outputs"]
    inputs = inputs_of(old.known)
    if ALL[name][1] in ("bits", "image42"):  # the made numbers were fed as whole ones
        inputs["obs"] = np.trunc(inputs["obs"])
    arrays = dict(zip(in_order(new), map(old.known.arrays.get, in_order(old.known)), strict=True))
    shapes = {key: array.shape for key, array in new.arrays.items()}
    out = new.graph.evaluate({k: v.reshape(shapes[k]) for k, v in arrays.items()}, inputs)
    logits = np.asarray(then["logits"])
    np.testing.assert_allclose(out["action_dist_inputs"].reshape(logits.shape), logits, atol=1e-5)
    np.testing.assert_allclose(out["vf_preds"].reshape(-1), then["values"], atol=1e-5)


def in_order(network):
    """The names of arrays in the order in which they are computed with."""
    steps = [step.name for step in network.graph.steps]
    return sorted(network.arrays, key=lambda n: (steps.index(n.rpartition(".")[0]), n))


#: Cases of each kind of module: of Ray's own, and of ours.
MODULES = [
    "PPO default",
    "PPO no-layers",
    "PPO lstm",
    "PPO lstm-steps-before",
    "PPO filters",
    "PPO camera",
    "PPO of-dict",
    "APPO filters",
    "DQN default",
    "DQN atoms-dueling",
    "DQN camera",
    "SAC apart",
    "SAC filters-discrete",
    "DDPG state-of-image",
    "DDPG state-of-camera",
    "TD3 hiddens",
    "ES filters",
    "ARS camera-continuous",
]


def module_of(name, **given):
    """The module that Ray builds of a case, and its network's settings and spaces."""
    settings, seen, acts = told("1.13.0", name)
    original, actions = (cases.space(told, gymnasium.spaces) for told in ALL[name][1:3])
    space = original
    if not isinstance(original, gymnasium.spaces.Box):
        flat = gymnasium.spaces.flatdim(original)
        space = gymnasium.spaces.Box(-np.inf, np.inf, (flat,), np.float32)
        space.original_space = original
    config = configs.todays_config(registry.of(settings.algorithm).becomes)
    default = config.get_default_rl_module_spec()
    module = ConfiguredModule(
        observation_space=space,
        action_space=actions,
        catalog_class=default.catalog_class,
        model_config={
            **configs.plain_model_config(config.model_config),
            "free_log_std": settings.free_log_std,  # as a trainer's config tells its modules
            **network_of(settings, default.module_class),
        },
        inference_only=False,
        **given,
    )
    return module, settings, seen, acts


@pytest.mark.parametrize("name", MODULES)
def test_a_module_computes_its_network(name):
    module, settings, seen, acts = module_of(name)
    torch.manual_seed(5)
    rng = np.random.default_rng(int(torch.randint(2**62, ()).item()))
    torch.manual_seed(5)
    module, *_ = module_of(name)  # draws the same
    network = draw_network(settings, seen, acts, rng)
    inputs = inputs_of(network)
    out, then = ModuleNetwork(module)(inputs), network.forward(inputs)
    assert {"action_dist_inputs", "q_values"} & out.keys()
    for key in then.keys() & out.keys() - set(network.graph.states):
        np.testing.assert_allclose(out[key].reshape(then[key].shape), then[key], atol=1e-5)


def test_target_networks_follow_constants_of_heads_too_and_stay_numbers(monkeypatch):
    """Infinite limits that are moved by a part of themselves are none any more."""
    monkeypatch.setitem(ALL, "targets", ("APPO", "vector", "continuous", {}))
    module, *_ = module_of("targets")
    module.make_target_networks()
    for main, target in module.get_target_network_pairs():
        update_target_network(main_net=main, target_net=target, tau=0.3)
        assert all(part.isfinite().all() for part in target.state_dict().values())


def test_deviations_apart_from_observations_are_half_of_what_any_actions_take(monkeypatch):
    model = {"free_log_std": True, "fcnet_hiddens": [8]}
    monkeypatch.setitem(ALL, "free", ("PPO", "vector", "dict_of_actions", {"model": model}))
    module, *_ = module_of("free")
    out = ModuleNetwork(module)({"obs": np.zeros((2, 4), np.float32)})
    assert out["action_dist_inputs"].shape == (2, 4)


@pytest.mark.parametrize("model", ["filters", "camera"])
def test_networks_with_images_never_asked_for_deviations_apart(model, monkeypatch):
    told, seen, acts = cases.MODELS[model]
    monkeypatch.setitem(ALL, "free", ("PPO", seen, acts, {"model": {**told, "free_log_std": True}}))
    module, *_ = module_of("free")  # of five numbers, which have no halves
    assert not [name for name in module.get_state() if "log_std" in name]
    monkeypatch.setitem(ALL, "free", ("PPO", "vector", acts, {"model": {"free_log_std": True}}))
    with pytest.raises(ConfigError, match="even number"):
        module_of("free")


@pytest.mark.parametrize("acts", ["continuous", "dict_of_actions"])
def test_what_an_lstm_looks_at_has_no_deviations_apart(acts, monkeypatch):
    model = {**cases.LSTM, "free_log_std": True}
    monkeypatch.setitem(ALL, "free", ("PPO", "vector", acts, {"model": model}))
    module, settings, seen, actions = module_of("free")
    network = draw_network(settings, seen, actions, np.random.default_rng(3))
    out = ModuleNetwork(module)(inputs_of(network))
    assert out["action_dist_inputs"].shape[-1] == 4


@pytest.mark.parametrize("name", ["PPO lstm", "PPO camera"])
def test_a_module_that_only_acts_begins_with_the_layers_that_act(name):
    module, *_ = module_of(name)
    acting = type(module)(
        observation_space=module.observation_space,
        action_space=module.action_space,
        model_config=module.model_config,
        catalog_class=type(module.catalog) if module.catalog else None,
        inference_only=True,
    )
    acting.set_state(module.get_state(inference_only=True))
    assert module.model_config["max_seq_len"] == 20


def test_today_and_what_names_an_initializer_have_networks_of_today():
    assert fresh.only_todays({"model": {"fcnet_weights_initializer": "ones_"}})
    assert fresh.only_todays({"_model_config": {"fcnet_hiddens": [8]}})
    old = {
        "model": {"fcnet_hiddens": [8], "fcnet_bias_initializer": None, "head_fcnet_hiddens": []}
    }
    assert not fresh.only_todays(old)
    assert fresh.makes("PPO", old)
    assert not fresh.makes("QMIX", old)


#: What configs are made of, beside models and Rays; observations and actions are drawn for each.
ALGORITHMS = [row.name for row in registry.ROWS if fresh.makes(row.name, {})]
OBSERVATIONS = ["vector", "table", "discrete", "several", "bits", "image42", "tuple", "nested"]
OBSERVATIONS += ["camera", "cameras"]
ACTIONS = ["discrete", "several", "continuous", "tuple_of_actions", "dict_of_actions"]


@pytest.mark.parametrize("ray", marked(["0.8.5", "1.0.1", "1.13.0", None], ["0.8.5", None]))
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_each_config_makes_a_network_or_is_refused_with_a_reason(algorithm, ray):
    drawn = random.Random(f"{algorithm} {ray}")
    models = [{"model": told} for told, *_ in cases.MODELS.values()]
    made = 0
    for config in (*models, *(told for told, *_ in (*cases.QS.values(), *cases.SACS.values()))):
        small = {"fcnet_hiddens": [6], "lstm_cell_size": 5, "conv_filters": cases.SMALL}
        own = {"model": {**small, **config.get("model", {})}}
        settings = ModelSettings.from_config({**config, **own}, {}, algorithm=algorithm, ray=ray)
        names = drawn.choice(OBSERVATIONS), drawn.choice(ACTIONS)
        seen, acts = (cases.space(name, gymnasium.spaces) for name in names)
        seen, acts = spaces.from_object(seen), spaces.from_object(acts)
        # Anything else than a refusal with its reason fails.
        with contextlib.suppress(ConfigError):
            made += bool(draw_network(settings, seen, acts, np.random.default_rng(3)).parameters)
    assert made > (5 if algorithm in ("SAC", "CQL") else 10)


def test_a_stored_model_config_imports_nobodys_code():
    with pytest.raises(ConfigError, match="not a module of RLlib"):
        configured._class("somebodys:Module")


@pytest.mark.parametrize("memory", ["use_lstm", "use_attention"])
@pytest.mark.parametrize("algorithm", ["DQN", "SimpleQ", "APEX", "R2D2"])
def test_of_all_q_networks_only_those_of_r2d2_remember(algorithm, memory):
    config = {"model": {memory: True, "lstm_cell_size": 4}}
    settings = ModelSettings.from_config(config, {}, algorithm=algorithm, ray="1.13.0")
    seen, acts = box(-1.0, 1.0, (3,)), Discrete(2)
    if algorithm == "R2D2":
        assert draw_network(settings, seen, acts, np.random.default_rng(1)).graph.states
        return
    with pytest.raises(ConfigError, match="R2D2"):
        draw_network(settings, seen, acts, np.random.default_rng(1))


def beginning(algorithm, legacy):
    """A config of today whose modules begin as those of a legacy one did."""
    config = configs.todays_config(registry.of(algorithm).becomes)
    use_legacy_networks(config, legacy, algorithm=algorithm, legacy_ray="1.13.0")
    return config


def test_only_networks_that_attend_see_several_steps_before():
    told = {"use_attention": True, "attention_use_n_prev_actions": 2}
    attends, ignores = (beginning(name, {"model": told}) for name in ("PPO", "SAC"))
    assert attends._env_to_module_connector is not None
    assert ignores._env_to_module_connector is None


@pytest.mark.parametrize(
    "named",
    [
        lambda policies: {"multiagent": {"policy_graphs": policies}},
        lambda policies: {"multiagent": {"policies": policies}},
        lambda policies: {"policies": policies},
    ],
)
def test_a_policy_has_the_network_that_it_asks_for_by_whichever_key(named):
    spaces_of_it = gymnasium.spaces.Box(-1, 1, (3,)), gymnasium.spaces.Discrete(2)
    of_its_own = {"model": {"fcnet_hiddens": [5]}}
    legacy = named({"one": (None, *spaces_of_it, {}), "two": (None, *spaces_of_it, of_its_own)})
    config = translate(legacy, algorithm="PPO").algorithm_config
    use_legacy_networks(config, legacy, algorithm="PPO", legacy_ray="1.13.0")
    told = {
        name: spec.model_config[NETWORK]["model"].get("fcnet_hiddens")
        for name, spec in modules.changed_specs(config).items()
    }
    assert told == {"one": None, "two": [5]}


@pytest.mark.parametrize(("ray", "least"), [("1.0.1", -20.0), ("1.13.0", -5.0)])
def test_deviations_of_sac_are_as_small_as_they_could_be(ray, least):
    network = draw_network(*told(ray, "SAC default"), np.random.default_rng(3))
    assert network.target.model_config["distribution"]["least_log_std"] == least
