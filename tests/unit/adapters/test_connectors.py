"""Which environments get RLlib's old preprocessors in front of their modules."""

import pytest

from rllib_compat.adapters.connectors import may_need_preprocessors


@pytest.mark.parametrize(
    ("env", "needed"),
    [("CartPole-v1", False), ("Pendulum-v1", False), ("FrozenLake-v1", True), ("mine", True)],
)
def test_only_observations_that_are_no_box_are_flattened(env, needed):
    assert may_need_preprocessors(env) is needed


def test_a_class_may_have_any_observations():
    assert may_need_preprocessors(object)


def test_a_config_without_an_environment_has_none():
    assert not may_need_preprocessors(None)
