"""Action distributions give the numbers of torch's, and draw what they say."""

import numpy as np
import pytest

from rllib_compat.networks.distributions import (
    Categorical,
    Gaussian,
    Squashed,
    default_distribution,
)
from rllib_compat.neutral import spaces

RNG = np.random.default_rng(3)
MANY = 20_000


def torch_of(distribution, inputs):
    import torch

    tensors = torch.as_tensor(inputs)
    if isinstance(distribution, Categorical):
        return torch.distributions.Categorical(logits=tensors)
    mean, log_std = tensors.chunk(2, -1)
    return torch.distributions.Independent(torch.distributions.Normal(mean, log_std.exp()), 1)


@pytest.mark.parametrize("distribution", [Categorical(5), Gaussian((3,))], ids=repr)
def test_log_likelihoods_are_those_of_torch(distribution):
    torch = pytest.importorskip("torch")
    inputs = RNG.normal(size=(50, distribution.size))
    actions = distribution.sample(inputs, RNG)
    theirs = torch_of(distribution, inputs).log_prob(torch.as_tensor(actions))
    ours = distribution.log_likelihood(inputs, actions)
    np.testing.assert_allclose(ours, theirs.numpy(), rtol=1e-5, atol=1e-5)


def test_samples_have_the_mean_and_the_deviation_that_were_asked_for():
    inputs = np.tile([1.0, -2.0, np.log(0.5), np.log(2.0)], (MANY, 1))
    drawn = Gaussian((2,)).sample(inputs, RNG)
    np.testing.assert_allclose(drawn.mean(0), [1.0, -2.0], atol=0.1)
    np.testing.assert_allclose(drawn.std(0), [0.5, 2.0], rtol=0.05)


def test_choices_are_drawn_as_often_as_they_are_likely():
    logits = np.log([[0.1, 0.2, 0.7]])
    drawn = Categorical(3).sample(np.tile(logits, (MANY, 1)), RNG)
    np.testing.assert_allclose(np.bincount(drawn) / MANY, [0.1, 0.2, 0.7], atol=0.02)


@pytest.mark.parametrize("squashes", [1, 2])
def test_squashed_actions_lie_within_their_range_and_their_density_sums_to_one(squashes):
    squashed = Squashed((1,), -2.0, 4.0, -20.0, squashes)
    inputs = np.tile([0.3, np.log(0.4)], (MANY, 1))
    drawn = squashed.sample(inputs, RNG)
    assert -2 < drawn.min() < drawn.max() < 4
    np.testing.assert_allclose(np.median(drawn), squashed.best(inputs[:1]).item(), atol=0.05)
    if squashes == 1:
        grid = np.linspace(-1.999, 3.999, MANY)
        density = np.exp(squashed.log_likelihood(inputs, grid[:, None]))
        # RLlib left out the range: its density is that of actions from -1 to 1.
        assert abs(np.trapezoid(density, grid / 3) - 1) < 0.01


def test_parts_of_a_space_are_drawn_for_themselves():
    space = spaces.DictSpace(
        {"b": spaces.MultiDiscrete((2, 3)), "a": spaces.TupleSpace((spaces.Discrete(4),))}
    )
    several = default_distribution(space, where="policies.p")
    assert several.size == 9
    inputs = np.zeros((2, 9))
    inputs[:, [2, 5, 8]] = 5.0  # a[0] is 2, b is (1, 2): by sorted names, a comes first
    best = several.best(inputs)
    assert best["a"][0].tolist() == [2, 2]
    assert best["b"].tolist() == [[1, 2], [1, 2]]
    logps = [Categorical(4).log_likelihood(inputs[:, :4], best["a"][0])]
    logps += [Categorical(2).log_likelihood(inputs[:, 4:6], best["b"][:, 0])]
    logps += [Categorical(3).log_likelihood(inputs[:, 6:], best["b"][:, 1])]
    np.testing.assert_allclose(several.log_likelihood(inputs, best), sum(logps))
