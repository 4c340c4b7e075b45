"""Weights and targets copied tensor by tensor are what Ray makes of them with `state_dict`s."""

from copy import deepcopy

import numpy as np
import pytest

pytest.importorskip("ray")

import torch
from gymnasium.spaces import Box, Discrete
from ray.rllib.core.rl_module.multi_rl_module import MultiRLModule
from ray.rllib.utils.torch_utils import update_target_network
from torch import nn

from rllib_compat.adapters import CompatEnvRunner
from rllib_compat.ray_versions import configs
from rllib_compat.ray_versions.tensors import target_of, weights_of_runner
from tests.marks import OTHERS_WARNINGS

pytestmark = [pytest.mark.matrix, *OTHERS_WARNINGS]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)
        self.register_buffer("scale", torch.rand(2))
        self.register_buffer("cache", torch.rand(2), persistent=False)


@pytest.mark.parametrize("tau", [1.0, 0.5, 0.005, 0.0])
def test_a_target_goes_as_far_as_rays(tau):
    net, target, rays = Net(), Net(), Net()
    rays.load_state_dict(target.state_dict())
    cache = target.cache.clone()
    for _ in range(3):
        target_of(target, net).go_towards(tau)
        update_target_network(main_net=net, target_net=rays, tau=tau)
        with torch.no_grad():
            net.layer.weight.add_(1.0)
    for name, value in rays.state_dict().items():
        torch.testing.assert_close(target.state_dict()[name], value, rtol=1e-6, atol=0)
    assert (target.cache == cache).all(), "what no state holds stays"


def test_a_target_of_integers_is_left_to_ray():
    net, target = nn.BatchNorm1d(2), nn.BatchNorm1d(2)
    assert target_of(target, net) is None


def test_a_target_that_was_made_anew_follows_the_new_network():
    target, first, second = Net(), Net(), Net()
    target_of(target, first).copy()
    target_of(target, second).copy()
    assert (target.layer.weight == second.layer.weight).all()


class Learner:
    def __init__(self, modules):
        self.module = modules


@pytest.fixture
def runner_and_learner():
    config = configs.todays_config("A2C").environment("CartPole-v1")
    runner = CompatEnvRunner(config=config)
    spec = config.get_multi_rl_module_spec(
        spaces={"default_policy": (Box(-5, 5, (4,), np.float32), Discrete(2))}
    )
    return runner, Learner(spec.build())


def of(module):
    return {name: value.copy() for name, value in module.get_state(inference_only=True).items()}


def test_an_env_runner_acts_with_the_learners_weights_and_has_its_own_tensors(runner_and_learner):
    runner, learner = runner_and_learner
    learned = learner.module["default_policy"]
    before = of(learned)
    for change in (0.0, 1.0):
        with torch.no_grad():
            for parameter in learned.parameters():
                parameter.add_(change)
        acting, wanted = of(runner.module), of(learned)
        weights_of_runner(runner, learner).copy()
        for name, value in wanted.items():
            np.testing.assert_array_equal(of(runner.module)[name], value)
    assert any((acting[name] != wanted[name]).any() for name in wanted)
    assert all((acting[name] == before[name]).all() for name in wanted), "until it is told"


def test_a_module_that_was_made_anew_gets_the_weights(runner_and_learner):
    runner, learner = runner_and_learner
    weights_of_runner(runner, learner).copy()
    runner.module = deepcopy(runner.module)
    with torch.no_grad():
        for parameter in runner.module.parameters():
            parameter.zero_()
    weights_of_runner(runner, learner).copy()
    for name, value in of(learner.module["default_policy"]).items():
        np.testing.assert_array_equal(of(runner.module)[name], value)


def test_a_module_with_a_state_of_its_own_kind_is_left_to_ray(runner_and_learner):
    runner, learner = runner_and_learner
    learned = learner.module["default_policy"]
    learned.get_state = lambda **asked: type(learned).get_state(learned, **asked)
    assert weights_of_runner(runner, learner) is None


def test_modules_that_are_not_asked_for_stay(runner_and_learner):
    runner, learner = runner_and_learner
    assert weights_of_runner(runner, learner, only=["another"]) is None
    assert isinstance(learner.module, MultiRLModule)
