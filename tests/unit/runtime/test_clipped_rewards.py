"""Rewards that are clipped for the learner are reported as the environment gave them."""

from types import SimpleNamespace

import gymnasium
import pytest

from rllib_compat.adapters import EnvSettings, make_env
from rllib_compat.runtime import ONLY_AGENT, LegacyEpisode

SPACE = gymnasium.spaces.Discrete(2)


class OneAgent:
    observation_space = action_space = SPACE

    def __init__(self, context):
        pass

    def reset(self):
        return 0

    def step(self, action):
        return 0, 5, False, {}


class TwoAgents(OneAgent):
    def reset(self):
        return {0: 0, 1: 0}

    def step(self, actions):
        return {0: 0, 1: 0}, {0: 5, 1: -0.25}, {"__all__": False}, {}


def rewards_of(env, chunk):
    worker = SimpleNamespace(sub_environments=lambda: [env], earlier_chunks=lambda _: [])
    return LegacyEpisode(worker, 0).follow(chunk).agent_rewards


@pytest.mark.parametrize(("limit", "seen"), [(True, 1.0), (0.5, 0.5)])
def test_one_agent(limit, seen):
    env = make_env(EnvSettings(OneAgent, clip_rewards=limit), {})
    chunk = SimpleNamespace(id_="x", get_return=lambda: 2 * seen)
    for _ in range(2):
        env.reset()
        assert [env.step(0)[1] for _ in range(2)] == [seen, seen]
    assert rewards_of(env, chunk) == {(ONLY_AGENT, "default_policy"): 10.0}


def test_many_agents():
    settings = EnvSettings(
        TwoAgents,
        clip_rewards=True,
        multi_agent=True,
        policy_spaces={"p": (SPACE, SPACE)},
        policy_mapping_fn=lambda agent: "p",
    )
    env = make_env(settings, {})
    env.reset()
    assert env.step({0: 0, 1: 0})[1] == {0: 1.0, 1: -1.0}
    env.step({0: 0, 1: 0})
    chunk = SimpleNamespace(
        id_="x", agent_episodes={}, module_for=lambda agent: f"p{agent}", agent_ids={0, 1}
    )
    assert rewards_of(env, chunk) == {(0, "p0"): 10.0, (1, "p1"): -0.5}


def test_rewards_that_are_not_clipped_are_those_of_the_episode():
    env = make_env(EnvSettings(OneAgent), {})
    env.reset()
    assert env.step(0)[1] == 5.0
    chunk = SimpleNamespace(id_="x", get_rewards=lambda: [1.0, 2.0])
    assert rewards_of(env, chunk) == {(ONLY_AGENT, "default_policy"): 3.0}
