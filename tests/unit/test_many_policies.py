"""Leagues of hundreds of policies: what each costs does not grow with the others."""

import gymnasium
import pytest

from rllib_compat.runtime import share_parts_of_policies

MANY = 8


@pytest.fixture
def config():
    """A config of more policies than Ray copies quickly."""
    from ray.rllib.algorithms.ppo import PPOConfig
    from ray.rllib.policy.policy import PolicySpec

    box, discrete = gymnasium.spaces.Box(-1, 1, (3,)), gymnasium.spaces.Discrete(2)
    names = [f"p{number}" for number in range(MANY)]
    policies = {name: PolicySpec(None, box, discrete, {}) for name in names}
    return PPOConfig().multi_agent(policies=policies)


def copies_of_setup(config, monkeypatch):
    copied = []
    real = type(config).copy
    monkeypatch.setattr(type(config), "copy", lambda *a, **k: copied.append(1) or real(*a, **k))
    policies, _ = config.get_multi_agent_setup()
    assert len(policies) == MANY
    return len(copied)


def test_ray_does_not_copy_the_whole_config_for_each_policy_of_a_league(config, monkeypatch):
    with monkeypatch.context() as patch:
        assert copies_of_setup(config, patch) == MANY  # what is to be avoided
    share_parts_of_policies(config)
    assert copies_of_setup(config, monkeypatch) == 0


def test_what_a_policy_has_for_itself_stays(config):
    config.policies["p0"].config = {"lr": 0.5}
    share_parts_of_policies(config)
    assert config.policies["p0"].config == {"lr": 0.5}
    assert config.policies["p1"].config is config.policies["p2"].config
