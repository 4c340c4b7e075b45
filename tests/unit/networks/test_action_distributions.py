"""The action distributions of this package's modules, with times and without."""

import pytest

pytest.importorskip("ray")

import numpy as np
import torch
from gymnasium.spaces import Box, Dict, Discrete

from rllib_compat.ray_versions import modules

CHOICES, NUMBERS = 3, 2
SPACE = Dict({"choice": Discrete(CHOICES), "numbers": Box(-1, 1, (NUMBERS,), np.float32)})


@pytest.mark.parametrize("batch", [(5,), (1, 1), (5, 1), (5, 4)])
def test_an_action_of_several_parts_has_the_probability_of_all(batch):
    logits = torch.randn(*batch, CHOICES + 2 * NUMBERS)
    acts = modules.action_distribution(SPACE).from_logits(logits)
    action = acts.sample()
    first, mean, log_std = logits.split([CHOICES, NUMBERS, NUMBERS], dim=-1)
    chosen = first.log_softmax(-1).gather(-1, action["choice"][..., None])[..., 0]
    moved = torch.distributions.Normal(mean, log_std.exp()).log_prob(action["numbers"]).sum(-1)
    assert acts.logp(action).shape == batch
    torch.testing.assert_close(acts.logp(action), chosen + moved)
