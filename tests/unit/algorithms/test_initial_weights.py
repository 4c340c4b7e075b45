"""What new networks of policy gradients begin with."""

import numpy as np
import pytest

pytest.importorskip("ray")

import gymnasium
import torch

from rllib_compat import ray_versions
from tests.marks import OTHERS_WARNINGS

pytestmark = OTHERS_WARNINGS

SPACES = (gymnasium.spaces.Box(-2.0, 2.0, (4,), np.float32), gymnasium.spaces.Discrete(3))


def norms(algorithm, **model):
    """The norms of units, and the sum of all biases."""
    config = ray_versions.todays_config(algorithm)
    config.rl_module(model_config={"fcnet_hiddens": [8], "vf_share_layers": False, **model})
    module = config.build_learner(spaces={"default_policy": SPACES}).module["default_policy"]
    layers = [layer for layer in module.modules() if isinstance(layer, torch.nn.Linear)]
    units = {round(float(norm), 4) for layer in layers for norm in layer.weight.norm(dim=1)}
    return units, sum(float(layer.bias.abs().sum()) for layer in layers)


@pytest.mark.parametrize("algorithm", ["A2C", "PG"])
def test_new_actors_and_critics_begin_as_they_did_unless_the_config_says_how(algorithm):
    assert norms(algorithm) == ({1.0, 0.01}, 0.0)
    drawn, _ = norms(algorithm, fcnet_kernel_initializer="xavier_uniform_")
    assert len(drawn) > 2
