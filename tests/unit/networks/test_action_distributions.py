"""The action distributions of this package's modules, with times and without."""

import pickle

import pytest

pytest.importorskip("ray")

import numpy as np
import torch
from gymnasium.spaces import Box, Dict, Discrete

from rllib_compat.algorithms import set_catalogs
from rllib_compat.modules import squashed_gaussian
from rllib_compat.ray_versions import configs, modules

CHOICES, NUMBERS = 3, 2
SPACE = Dict({"choice": Discrete(CHOICES), "numbers": Box(-1, 1, (NUMBERS,), np.float32)})


def of_rays_module():
    """The distribution of Ray's own module of PPO, as a trainer has it."""
    config = configs.todays_config("PPO")
    set_catalogs(config)
    spec = config.get_multi_rl_module_spec(spaces={"default_policy": (SPACE["numbers"], SPACE)})
    return spec["default_policy"].build().get_exploration_action_dist_cls()


@pytest.mark.parametrize(
    "distribution",
    [
        modules.action_distribution(SPACE),
        of_rays_module(),
    ],
    ids=["of our modules", "of Ray's modules"],
)
@pytest.mark.parametrize("batch", [(5,), (1, 1), (5, 1), (5, 4)])
def test_an_action_of_several_parts_has_the_probability_of_all(batch, distribution):
    logits = torch.randn(*batch, CHOICES + 2 * NUMBERS)
    acts = distribution.from_logits(logits)
    action = acts.sample()
    first, mean, log_std = logits.split([CHOICES, NUMBERS, NUMBERS], dim=-1)
    chosen = first.log_softmax(-1).gather(-1, action["choice"][..., None])[..., 0]
    moved = torch.distributions.Normal(mean, log_std.exp()).log_prob(action["numbers"]).sum(-1)
    assert acts.logp(action).shape == batch
    torch.testing.assert_close(acts.logp(action), chosen + moved)


def test_pickle_finds_a_squashed_distribution_of_any_range():
    made = squashed_gaussian([-2.0, 0.0], [2.0, 1.0], -20.0, 2)
    loaded = pickle.loads(pickle.dumps(made))
    logits = torch.randn(3, 2 * NUMBERS)
    action = made.from_logits(logits).to_deterministic().sample()
    torch.testing.assert_close(loaded.from_logits(logits).to_deterministic().sample(), action)
    expected = made.from_logits(logits).logp(action)
    torch.testing.assert_close(loaded.from_logits(logits).logp(action), expected)
