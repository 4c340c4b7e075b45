"""Which environments get RLlib's old preprocessors in front of their modules."""

from types import SimpleNamespace

import pytest
from gymnasium import spaces
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.policy.policy import PolicySpec

from rllib_compat.ray_versions import configs, connectors
from rllib_compat.runtime import add_preprocessors, may_need_preprocessors


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


def test_policies_with_structured_spaces_get_flat_ones_for_their_modules():
    space = spaces.Tuple([spaces.Box(0, 1, (2,)), spaces.Discrete(4)])
    given = PolicySpec(observation_space=space, action_space=spaces.Discrete(2))
    config = PPOConfig().multi_agent(
        policies={"a": given, "b": PolicySpec()}, policy_mapping_fn=lambda agent, *_, **__: "a"
    )
    add_preprocessors(config)
    add_preprocessors(config)
    assert config.policies["a"].observation_space.shape == (6,)
    assert given.observation_space is space
    assert config.policies["b"].observation_space is None
    # No agent that the environment knows now is structured; one that comes later may be.
    known = SimpleNamespace(observation_space=spaces.Dict({"x": spaces.Box(0, 1, (2,))}))
    (connector,) = config._env_to_module_connector(known, None, None)
    assert type(connector).__name__ == "FlattenObservations"


def test_policies_of_bandits_get_flat_spaces_unless_they_see_a_table_of_items():
    spaces_of = {
        "flat": spaces.Discrete(4),
        "table": spaces.Dict({"item": spaces.Box(0, 1, (3, 2))}),
    }
    given = {
        name: PolicySpec(observation_space=space, action_space=spaces.Discrete(3))
        for name, space in spaces_of.items()
    }
    config = configs.todays_config("BanditLinUCB").multi_agent(
        policies=given, policy_mapping_fn=lambda agent, *_, **__: agent
    )
    add_preprocessors(config)
    assert config.policies["flat"].observation_space.shape == (4,)
    assert config.policies["table"].observation_space is spaces_of["table"]


@pytest.mark.parametrize(
    "factory",
    [lambda env: [env], lambda env, spaces, device: [env], lambda *given: given[:1]],
    ids=["environment only", "all that Ray passes", "anything"],
)
def test_factories_of_every_ray_get_what_they_take(factory):
    assert connectors.make_connectors(factory, "env", "spaces", "device") == ["env"]


def test_the_error_of_a_users_factory_is_theirs_and_it_runs_once():
    runs = []

    def factory(env, spaces, device):
        runs.append(env)
        raise TypeError("takes 2 positional arguments but 3 were given")  # in the user's own code

    with pytest.raises(TypeError, match="takes 2"):
        connectors.make_connectors(factory, "env", "spaces", "device")
    assert runs == ["env"]
