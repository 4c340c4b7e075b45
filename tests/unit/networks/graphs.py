"""What torch makes of a network's graph, held against what numpy makes of it."""

import numpy as np
import pytest


def assert_torch_computes(graph, arrays, batch, tolerance=1e-4):
    """Compares all outputs of a batch."""
    torch = pytest.importorskip("torch")
    from rllib_compat.networks import GraphNet

    net = GraphNet(graph, {name: array.shape for name, array in arrays.items()})
    tensors = {name: torch.tensor(array, dtype=torch.float32) for name, array in arrays.items()}
    net.load_state_dict(tensors)
    theirs = net({name: torch.from_numpy(part).float() for name, part in batch.items()})
    for name, ours in graph.evaluate(arrays, batch).items():
        assert theirs[name].shape == ours.shape
        np.testing.assert_allclose(theirs[name].detach(), ours, atol=tolerance, rtol=tolerance)
    return net


def random_inputs(network, rng, count=6):
    """A batch of what a network takes."""
    return {name: rng.normal(size=(count, *size)) for name, size in network.graph.inputs.items()}


def online(network):
    """The arrays of a network, but for those of its targets."""
    return {name: array for name, array in network.arrays.items() if not name.startswith("target.")}
