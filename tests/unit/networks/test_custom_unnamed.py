"""Arrays of TensorFlow 2's custom models, which are stored as a list."""

from dataclasses import replace

import numpy as np
import pytest

from rllib_compat.errors import CheckpointError
from rllib_compat.formats import read_checkpoint
from rllib_compat.networks import custom
from tests.legacy.cases import find

(KERAS,) = find(variant="custom-keras")
LAYERS = {"hidden_1": (5, 9), "hidden_2": (9, 7), "out": (7, 3), "value": (7, 1)}


def stored():
    return read_checkpoint(KERAS.checkpoint).policies["default_policy"]


def listed(*shapes):
    """A list of layers by number, each with its bias."""
    arrays = [np.zeros(part) for shape in shapes for part in (shape, shape[-1:])]
    return {str(number): array for number, array in enumerate(arrays)}


def torch_module(**layers):
    return {
        name: shape
        for layer, (ins, outs) in layers.items()
        for name, shape in ((f"{layer}.weight", (outs, ins)), (f"{layer}.bias", (outs,)))
    }


def test_the_optimizer_of_a_real_checkpoint_tells_the_names():
    found = custom.named_list(stored())
    recorded = [
        name.removesuffix(":0") for name, *_ in KERAS.about["policies"]["default_policy"]["weights"]
    ]
    assert list(found) == recorded


@pytest.mark.parametrize("change", ["none", "other shapes"])
def test_an_optimizer_that_is_not_there_or_of_another_network_tells_nothing(change):
    policy = stored()
    if change == "none":
        policy = replace(policy, optimizer=None)
    else:
        policy = replace(policy, weights=[*policy.weights[2:], *policy.weights[:2]])
    assert list(custom.named_list(policy)) == [str(n) for n in range(8)]


def test_layers_of_different_shapes_find_their_places_in_any_order():
    old = listed(*LAYERS.values())
    wanted = torch_module(**dict(reversed(LAYERS.items())))
    found = custom.places_by_shape(old, wanted, {})
    assert found == {
        str(2 * i + j): f"{layer}.{part}"
        for i, layer in enumerate(LAYERS)
        for j, part in enumerate(("weight", "bias"))
    }


def test_layers_of_one_shape_are_asked_for_and_what_the_caller_says_is_followed():
    layers = {"a": (4, 9), "b": (9, 9), "c": (9, 9), "out": (9, 2)}
    old, wanted = listed(*layers.values()), torch_module(**layers)
    with pytest.raises(CheckpointError, match=r"2 and 4 .* may be b\.weight or c\.weight") as error:
        custom.places_by_shape(old, wanted, {})
    assert '{"2": "b.weight"}' in error.value.fix
    said = {"2": "c.weight", "3": "c.bias"}
    found = custom.places_by_shape(old, wanted, said)
    assert found["2"] == "c.weight"
    assert (found["4"], found["5"]) == ("b.weight", "b.bias")
