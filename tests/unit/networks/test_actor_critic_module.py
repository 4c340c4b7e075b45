"""The module of ours for recurrent networks, as Ray's env runners and learners call it."""

import numpy as np
import pytest
import torch

from rllib_compat.conversion.compare import sample_inputs
from rllib_compat.conversion.write.checkpointable import module_specs
from tests.legacy.cases import find
from tests.legacy.networks import read

NAMES = ("ppo-torch-lstm-prev", "ppo-tf-attention", "ppo-tf-lstm")
CASES = [c for c in find(ray="1.13.0") if c.path.name in NAMES]


def built(case, **options):
    """A case's network, and its module with the old weights."""
    checkpoint, networks = read(case)
    ((policy_id, network),) = networks.items()
    spec = module_specs(checkpoint, networks)[policy_id]
    spec.inference_only = options.get("inference_only", False)
    module = spec.build()
    kept = module.get_state()
    module.set_state({k: v for k, v in network.module_state().items() if k in kept})
    return network, module


def batch_of(network, inputs, *, as_vector):
    """A batch as callers make it by hand, or as env runners do: one vector of all inputs."""
    tensors = {k: torch.from_numpy(np.asarray(v, np.float32)) for k, v in inputs.items()}
    states = {name: tensors.pop(name) for name in network.graph.states}
    if as_vector:
        lead = tensors["obs"].shape[:2]
        parts = [
            tensors[name].reshape(*lead, -1) for name in network.graph.inputs if name in tensors
        ]
        tensors = {"obs": torch.cat(parts, dim=-1)}
    return {**tensors, "state_in": states}


@pytest.mark.parametrize("as_vector", [False, True])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_it_computes_the_old_network_over_sequences(case, as_vector):
    network, module = built(case)
    inputs = sample_inputs(network.graph, None, 100)
    expected, batch = network.forward(inputs), batch_of(network, inputs, as_vector=as_vector)
    with torch.no_grad():
        out = module.forward_inference(batch)
        values = module.compute_values(batch)
    np.testing.assert_allclose(out["action_dist_inputs"], expected["action_dist_inputs"], atol=1e-4)
    np.testing.assert_allclose(values, expected["vf_preds"], atol=1e-4)
    for name, state in out["state_out"].items():
        np.testing.assert_allclose(state, expected[name], atol=1e-4)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_ray_sees_that_it_has_states_and_how_long_its_sequences_are(case):
    network, module = built(case)
    assert module.is_stateful()
    assert module.model_config["max_seq_len"] == 8
    for name, state in module.get_initial_state().items():
        assert state.shape == network.graph.inputs[name]
        assert not state.any()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_env_runners_get_it_without_the_value_layers(case):
    _, whole = built(case)
    _, small = built(case, inference_only=True)
    left = set(whole.get_state()) - set(small.get_state())
    assert left == {"net.value.kernel", "net.value.bias"}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_gradients_reach_every_parameter(case):
    network, module = built(case)
    batch = batch_of(network, sample_inputs(network.graph, None, 100), as_vector=False)
    out = module.forward_train(batch)
    (out["action_dist_inputs"].sum() + module.compute_values(batch).sum()).backward()
    assert all(p.grad is not None for p in module.parameters())


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_training_pass_computes_shared_layers_once(case):
    network, module = built(case)
    batch = batch_of(network, sample_inputs(network.graph, None, 100), as_vector=False)
    with torch.no_grad():
        alone = module.compute_values(batch)
    passes = []
    module.net.register_forward_hook(lambda *_: passes.append(1))
    out = module.forward_train(batch)
    values = module.compute_values(batch, out["embeddings"])
    assert len(passes) == 1
    torch.testing.assert_close(values.detach(), alone)
    values.sum().backward()
    assert any(p.grad is not None and p.grad.any() for p in module.parameters())
