"""The optimizers that old policies had, in today's learners."""

import gymnasium
import pytest

from rllib_compat.config import translate


def optimizer_of(algorithm, config):
    told = {"env": "CartPole-v1", **config}
    legacy_ray = told.pop("legacy_ray", None)
    translation = translate(told, algorithm=algorithm, legacy_ray=legacy_ray)
    told = translation.algorithm_config
    learner = told.build_learner(env=gymnasium.make("CartPole-v1"))
    learner.build()
    (pair,) = learner.get_optimizers_for_module("default_policy")
    return pair[1], translation.to_python()


@pytest.mark.parametrize(("epsilon", "adapted"), [(0.00015, True), (1e-8, False)])
def test_the_epsilon_of_adam_is_kept(epsilon, adapted):
    optimizer, code = optimizer_of("DQN", {"adam_epsilon": epsilon, "lr": 0.25})
    assert type(optimizer).__name__ == "Adam"
    assert optimizer.param_groups[0]["eps"] == epsilon
    assert optimizer.param_groups[0]["lr"] == 0.25
    assert ("legacy_optimizer" in code) is adapted


@pytest.mark.parametrize(
    ("told", "name", "group"),
    [
        ({}, "RMSprop", {"alpha": 0.9}),
        ({"momentum": 0.5}, "TensorFlowRMSprop", {"alpha": 0.9, "momentum": 0.5, "first": 0.0}),
        ({"legacy_ray": "0.8.5"}, "TensorFlowRMSprop", {"alpha": 0.9, "first": 1.0}),
        ({"framework": "torch"}, "RMSprop", {"alpha": 0.99, "weight_decay": 0.9}),
    ],
)
def test_rmsprop_is_that_of_the_framework(told, name, group):
    config = {"opt_type": "rmsprop", "decay": 0.9, "lr": 0.25, "num_gpus": 0, **told}
    optimizer, code = optimizer_of("IMPALA", config)
    assert type(optimizer).__name__ == name
    expected = {"eps": 0.1, "lr": 0.25, **group}
    assert {key: optimizer.param_groups[0][key] for key in expected} == expected
    assert "adapt_config(config)" in code
