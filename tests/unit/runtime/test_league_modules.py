"""Frozen modules compute with shared weights and layers, and nobody can tell."""

import copy
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict

import cloudpickle
import gymnasium as gym
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.algorithms.ppo.ppo_catalog import PPOCatalog
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
from ray.rllib.core.rl_module.rl_module import RLModuleSpec

from rllib_compat.league.modules import (
    FrozenModules,
    Packed,
    arrays_of,
    pack,
    tensors_on,
    weights_of,
)

Module = PPOConfig().get_default_rl_module_spec().module_class  # its name is another on old Rays
BOX, ACTIONS = gym.spaces.Box(-1, 1, (8,)), gym.spaces.Discrete(2)
FULLY_CONNECTED = {"fcnet_hiddens": [16, 16]}
LSTM = {**FULLY_CONNECTED, "use_lstm": True, "lstm_cell_size": 8, "max_seq_len": 5}


class Kept(Module):
    """Keeps a list of its layers, as people do."""

    def setup(self):
        super().setup()
        self.kept = [self.pi]


class Counting(torch.nn.Linear):
    """A layer of one's own that remembers something."""

    calls = 0


class Own(Module):
    """Has such a layer."""

    def setup(self):
        super().setup()
        self.pi = Counting(16, 2)


class Hooked(Module):
    """Has a hook on a layer."""

    def setup(self):
        super().setup()
        self.pi.register_forward_hook(lambda *_: None)


class Lazy(Module):
    """Makes a layer when it is first used."""

    def _forward_inference(self, batch, **kwargs):
        out = super()._forward_inference(batch, **kwargs)
        if not hasattr(self, "late"):
            self.late = torch.nn.Linear(2, 2)
        return {**out, "action_dist_inputs": self.late(out["action_dist_inputs"])}


class Temperature(Module):
    """Has a parameter beside its layers."""

    def setup(self):
        super().setup()
        self.temperature = torch.nn.Parameter(torch.ones(1))


def build(model=FULLY_CONNECTED, module_class=Module, space=BOX):
    return RLModuleSpec(
        module_class=module_class,
        observation_space=space,
        action_space=ACTIONS,
        inference_only=True,
        model_config=asdict(DefaultModelConfig(**model)),
        catalog_class=PPOCatalog,
    ).build()


class Store(dict):
    """Read-only weights by reference, as Ray's object store gives them."""

    def put(self, ref, module):
        self[ref] = pack(module.get_state())
        for array in self[ref].flat.values():
            array.flags.writeable = False


@pytest.fixture
def store(monkeypatch):
    made = Store()
    monkeypatch.setattr("ray.get", made.__getitem__)
    return made


def outputs(module):
    rng = torch.Generator().manual_seed(7)
    if not module.is_stateful():
        batch = {"obs": torch.randn(4, 8, generator=rng)}
    else:
        state = {k: torch.zeros(2, *v.shape) for k, v in module.get_initial_state().items()}
        batch = {"obs": torch.randn(2, 5, 8, generator=rng), "state_in": state}
    return module.forward_inference(batch)["action_dist_inputs"]


def layers_of(module):
    """The layers that a frozen module computes with; None if it is not frozen."""
    weights = weights_of(module)
    return weights and weights._layers


def share(store, model=FULLY_CONNECTED, capacity=None, module_class=Module):
    modules = [build(model, module_class) for _ in range(3)]
    right = [outputs(module) for module in modules]
    frozen = FrozenModules(capacity)
    for ref, module in enumerate(modules):
        store.put(ref, module)
        frozen.freeze(module, ref)
    return modules, right, frozen


@pytest.fixture(params=[FULLY_CONNECTED, LSTM], ids=["dense", "lstm"])
def league(request, store):
    """Three modules that share their layers, what each computed before, and who holds them."""
    modules, right, frozen = share(store, request.param)
    assert len(set(map(layers_of, modules))) == 1
    return modules, right, frozen


def check(modules, right):
    for _ in range(2):
        for module, expected in zip(modules, right, strict=True):
            assert torch.equal(outputs(module), expected)


def test_each_computes_what_it_computed_alone(league):
    modules, right, _ = league
    check(modules, right)
    for module in modules:  # what Ray's runners and people ask, and what is not there
        assert not hasattr(module, "nothing")
        assert isinstance(module, Module)
        assert module.is_stateful() == bool(module.get_initial_state())
        module.get_state()
    assert all(map(layers_of, modules))


def test_a_spec_of_a_frozen_module_builds_an_ordinary_one(league):
    modules, right, _ = league
    made = cloudpickle.loads(cloudpickle.dumps(RLModuleSpec.from_module(modules[0]))).build()
    assert type(made) is Module
    made.set_state(modules[0].get_state())
    assert torch.equal(outputs(made), right[0])


@pytest.mark.parametrize(
    "take", [lambda m: m.pi, lambda m: list(m.parameters()), lambda m: list(m.modules())]
)
def test_whoever_takes_a_layer_gets_one_that_is_not_shared(league, store, take):
    modules, right, _ = league
    taken = take(modules[0])
    stored = {name: np.copy(array) for name, array in arrays_of(store[0]).items()}
    check(modules, right)
    with torch.no_grad():
        for parameter in modules[0].parameters():
            parameter.add_(1)
    check(modules[1:], right[1:])
    assert not torch.equal(outputs(modules[0]), right[0])
    assert all(np.array_equal(arrays_of(store[0])[name], stored[name]) for name in stored)
    del taken


def test_threads_do_not_mix_the_weights_of_two(league):
    modules, right, _ = league
    with ThreadPoolExecutor(len(modules)) as pool:
        rounds = [(i, pool.submit(outputs, modules[i])) for _ in range(50) for i in range(3)]
        assert all(torch.equal(found.result(), right[i]) for i, found in rounds)


def test_a_copy_has_layers_of_its_own(league):
    modules, right, _ = league
    for i, make in enumerate((copy.deepcopy, lambda m: cloudpickle.loads(cloudpickle.dumps(m)))):
        other = make(modules[i])
        assert torch.equal(outputs(other), right[i])
        other.load_state_dict(modules[2].state_dict())
        assert torch.equal(outputs(other), right[2])
    check(modules, right)
    assert layers_of(modules[2])


def test_a_layer_that_is_made_while_one_computes_is_its_own(store):
    modules, right, _ = share(store, module_class=Lazy)
    assert not hasattr(build(module_class=Lazy), "late")
    late = [module.late for module in modules]
    assert len(set(late)) == 3
    check(modules, right)


@pytest.mark.parametrize("model", [FULLY_CONNECTED, LSTM], ids=["dense", "lstm"])
def test_one_that_was_let_go_of_has_its_weights_when_it_is_used(store, model):
    modules, right, _ = share(store, model, capacity=1)
    for module, expected in zip(modules, right, strict=True):
        assert torch.equal(outputs(module), expected)
        assert [weights_of(m).attached for m in modules] == [m is module for m in modules]


def test_new_weights_of_one_change_no_other(league, store):
    modules, right, frozen = league
    store.put("new", modules[2])
    frozen.freeze(modules[0], "new")
    check(modules, [right[2], *right[1:]])


def test_read_only_arrays_that_ray_broadcasts_are_not_copied(league, store):
    modules, right, _ = league
    modules[0].set_state(arrays_of(store[1]))
    check(modules, [right[1], *right[1:]])
    assert layers_of(modules[0])
    modules[0].set_state({name: np.copy(array) for name, array in arrays_of(store[2]).items()})
    check(modules, [right[2], *right[1:]])
    assert not layers_of(modules[0])


@pytest.mark.parametrize("module_class", [Kept, Own, Hooked, Temperature])
def test_layers_that_could_be_more_than_their_numbers_are_not_shared(store, module_class):
    modules, right, _ = share(store, module_class=module_class)
    assert len(set(map(layers_of, modules))) == 3
    check(modules, right)
    with torch.no_grad():  # whatever is written reaches no other module, and not the store
        for parameter in modules[0].parameters():
            parameter.add_(1)
    check(modules[1:], right[1:])
    assert not torch.equal(outputs(modules[0]), right[0])
    assert module_class is not Kept or modules[0].kept[0] is modules[0].pi


def test_modules_with_other_bounds_keep_their_spaces(store):
    frozen, specs = FrozenModules(None), []
    for ref, box in enumerate((BOX, gym.spaces.Box(-1, 1, (8,)), gym.spaces.Box(-2, 2, (8,)))):
        module = build(space=box)
        specs.append(RLModuleSpec.from_module(module))
        store.put(ref, module)
        frozen.freeze(module, ref, specs[-1])
        assert module.observation_space == box == specs[-1].observation_space
        assert module.catalog.observation_space == box
    assert specs[1].observation_space is specs[0].observation_space
    assert specs[1].model_config is specs[0].model_config


def test_other_sizes_have_other_layers(store):
    models = [{"fcnet_hiddens": [n, n]} for n in (8, 16, 8)]
    modules = [build(model) for model in (*models, {**models[0], "fcnet_activation": "relu"})]
    modules.append(build(LSTM))
    frozen = FrozenModules(None)
    for ref, module in enumerate(modules):
        store.put(ref, module)
        frozen.freeze(module, ref)
    assert len(set(map(layers_of, modules))) == 4


KINDS = st.sampled_from(["f2", "f4", "f8", "i1", "i8", "?"])
WEIGHTS = st.dictionaries(
    st.text(max_size=5),
    KINDS.flatmap(lambda kind: arrays.arrays(kind, arrays.array_shapes(min_dims=0, max_side=9))),
    max_size=6,
)


@given(WEIGHTS)
def test_each_array_comes_out_as_it_was(weights):
    packed = pack(weights)
    assert isinstance(packed, Packed)
    found, tensors = arrays_of(packed), tensors_on(packed)
    assert list(found) == list(weights) == list(tensors)
    for name, array in weights.items():
        for there in (found[name], tensors[name].numpy()):
            assert there.dtype == array.dtype
            assert there.shape == array.shape
            assert there.tobytes() == array.tobytes()


def test_tensors_of_one_dtype_have_one_memory_and_begin_where_torch_is_fast():
    packed = pack({"weight": np.ones((3, 5), np.float32), "bias": np.ones(3, np.float32)})
    tensors = tensors_on(packed)
    assert len({t.untyped_storage().data_ptr() for t in tensors.values()}) == 1
    assert all(t.storage_offset() % 16 == 0 for t in tensors.values())


@pytest.mark.parametrize("other", [{"depth": 3}, {"names": np.array(["a"])}])
def test_what_is_no_number_of_torch_is_left_as_it_is(other):
    given = {"weight": np.ones(3, np.float32), **other}
    assert pack(given) is given
    assert arrays_of(given) is given


def test_arrays_by_themselves_become_tensors_on_their_memory():
    array = np.ones(3, np.float32)
    tensor = tensors_on({"bias": array})["bias"]
    array[0] = 2
    assert torch.equal(tensor, torch.tensor([2.0, 1.0, 1.0]))
