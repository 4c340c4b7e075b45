"""Episodes that a limit has cut."""

import pytest

pytest.importorskip("ray")

from ray.rllib.env.multi_agent_episode import MultiAgentEpisode
from ray.rllib.env.single_agent_episode import SingleAgentEpisode

from rllib_compat.runtime.cut_episodes import end_at_cut
from tests.marks import OTHERS_WARNINGS

pytestmark = OTHERS_WARNINGS


def flags(episode):
    return episode.is_terminated, episode.is_truncated


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ((False, True), (True, False)),
        ((True, False), (True, False)),
        ((False, False), (False, False)),  # a fragment, and the episode goes on
    ],
)
def test_a_cut_is_an_end(before, after):
    terminated, truncated = before
    episode = SingleAgentEpisode(
        observations=[0.0, 1.0],
        actions=[0],
        rewards=[1.0],
        terminated=terminated,
        truncated=truncated,
        len_lookback_buffer=0,
    )
    end_at_cut(episode)
    assert flags(episode) == after
    assert episode.is_done is any(before)


def test_a_cut_is_an_end_for_each_agent():
    episode = MultiAgentEpisode()
    episode.add_env_reset(observations={"a": 0.0, "b": 0.0})
    episode.add_env_step(
        observations={"a": 1.0, "b": 1.0},
        actions={"a": 0, "b": 0},
        rewards={"a": 1.0, "b": 1.0},
        terminateds={"a": True, "__all__": False},
        truncateds={"b": True, "__all__": True},
    )
    end_at_cut(episode)
    assert flags(episode) == (True, False)
    assert {flags(part) for part in episode.agent_episodes.values()} == {(True, False)}
