"""The optimizers that old policies had, in today's learners."""

import gymnasium
import pytest

from rllib_compat.config import translate


def optimizer_of(algorithm, config):
    translation = translate({"env": "CartPole-v1", **config}, algorithm=algorithm)
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


def test_impala_on_rmsprop_stays_on_it():
    config = {"opt_type": "rmsprop", "decay": 0.9, "momentum": 0.5, "lr": 0.25}
    optimizer, code = optimizer_of("IMPALA", config)
    assert type(optimizer).__name__ == "RMSprop"
    group = optimizer.param_groups[0]
    assert (group["alpha"], group["momentum"], group["eps"], group["lr"]) == (0.9, 0.5, 0.1, 0.25)
    assert "adapt_config(config)" in code
