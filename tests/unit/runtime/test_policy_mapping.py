"""What mapping functions of old see."""

from types import SimpleNamespace

import pytest
from ray.rllib.env.multi_agent_episode import MultiAgentEpisode

from rllib_compat.adapters import MappingFn, PolicyOfSameName
from rllib_compat.errors import LegacyEnvError
from rllib_compat.runtime import resolve_policy_id


def test_the_number_of_an_episode_decides_who_plays_which_side():
    # Self-play of Ray 1.x; both sides have to come up, and both agents have to see the same one.
    def mapping(agent_id, episode, **kwargs):
        return "main" if episode.episode_id % 2 == agent_id else "other"

    sides = set()
    for _ in range(50):
        episode = MultiAgentEpisode()
        side = tuple(MappingFn(mapping)(agent, episode) for agent in (0, 1))
        assert sorted(side) == ["main", "other"]
        sides.add(side)
    assert len(sides) == 2


def test_todays_episode_is_there_as_well():
    episode = MultiAgentEpisode()
    assert MappingFn(lambda agent, episode: episode.id_)(0, episode) == episode.id_
    assert MappingFn(lambda agent, episode: episode)(0, None) is None


def test_the_old_api_stacks_episode_is_left_alone():
    episode = SimpleNamespace(episode_id=7)
    assert MappingFn(lambda agent, episode: episode)(0, episode) is episode


def test_a_number_is_the_same_wherever_it_is_asked_for():
    numbered = MappingFn(lambda agent, episode: episode.episode_id)
    assert numbered(0, MultiAgentEpisode(id_="abc")) == 891568578


def test_a_policy_of_the_same_name():
    mapping = PolicyOfSameName(("a", "b"))
    assert mapping("a") == "a"
    with pytest.raises(LegacyEnvError, match="no policy 'c' for the agent"):
        mapping("c")


@pytest.mark.parametrize(
    ("asked", "policies", "found"),
    [
        ("default_policy", {"default_policy"}, "default_policy"),
        ("default", {"default_policy"}, "default_policy"),
        ("default_policy", {"shared_policy"}, "shared_policy"),
        ("default_policy", {"one", "two"}, "default_policy"),
        ("three", {"shared_policy"}, "three"),
    ],
)
def test_the_one_policy_of_many_agents_is_the_default_one(asked, policies, found):
    assert resolve_policy_id(asked, policies) == found
