"""Episodes that a limit has cut."""

import pytest

pytest.importorskip("ray")

from ray.rllib.env.multi_agent_episode import MultiAgentEpisode
from ray.rllib.env.single_agent_episode import SingleAgentEpisode

from rllib_compat import translate
from rllib_compat.adapters import adapt_callbacks
from rllib_compat.runtime import with_trainer
from tests.marks import OTHERS_WARNINGS
from tests.unit.runtime.runners import runner

pytestmark = OTHERS_WARNINGS


def flags(episode):
    return episode.is_terminated, episode.is_truncated


def chunk(*, terminated=False, truncated=False):
    return SingleAgentEpisode(
        observations=[0.0, 1.0],
        actions=[0],
        rewards=[1.0],
        terminated=terminated,
        truncated=truncated,
        len_lookback_buffer=0,
    )


def sampled_for_trainer(episode, *, truncation_terminates=True):
    """What callbacks of a trainer make of an episode that its env runner has sampled."""
    env_runner = runner()
    adapter = with_trainer(adapt_callbacks(None), truncation_terminates=truncation_terminates)()
    adapter.on_sample_end(
        env_runner=env_runner, metrics_logger=env_runner.metrics, samples=[episode]
    )


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
    episode = chunk(terminated=terminated, truncated=truncated)
    sampled_for_trainer(episode)
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
    sampled_for_trainer(episode)
    assert flags(episode) == (True, False)
    assert {flags(part) for part in episode.agent_episodes.values()} == {(True, False)}


@pytest.mark.parametrize("truncation_terminates", [True, False])
def test_a_trainers_env_runners_let_cut_episodes_end(truncation_terminates):
    sampled = chunk(truncated=True)
    sampled_for_trainer(sampled, truncation_terminates=truncation_terminates)
    assert flags(sampled) == (truncation_terminates, not truncation_terminates)


@pytest.mark.parametrize(
    ("told", "legacy_ray", "truncation_terminates"),
    [
        ({"horizon": 7}, "1.13.0", True),
        ({"horizon": 7, "soft_horizon": True}, "1.13.0", False),
        ({"soft_horizon": True}, "1.13.0", True),  # a time limit of the environment's own
        ({"no_done_at_end": True}, "1.13.0", False),
        ({}, "2.0.1", True),
        ({}, "2.3.1", False),
        ({}, "today", False),
    ],
)
def test_where_a_cut_is_an_end(told, legacy_ray, truncation_terminates):
    config = {"env": "CartPole-v1", **told}
    for algorithm in ("PPO", "DQN"):
        assert (
            translate(config, algorithm=algorithm, legacy_ray=legacy_ray).truncation_terminates
            is truncation_terminates
        )
