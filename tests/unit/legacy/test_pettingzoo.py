"""Ray's wrappers of PettingZoo as they were, around environments of its older and newer APIs."""

import gymnasium
import numpy as np
import pytest

pytest.importorskip("ray")

from rllib_compat import legacy
from tests.marks import OTHERS_WARNINGS

legacy.deactivate()

pytestmark = OTHERS_WARNINGS

BOX, MOVES = gymnasium.spaces.Box(0, 9, (1,)), gymnasium.spaces.Discrete(2)


class Turns:
    """Two agents act in turn, three times each, by the API before or since PettingZoo 1.22."""

    def __init__(self, todays):
        self.todays = todays

    def observation_space(self, agent):
        return BOX

    def action_space(self, agent):
        return MOVES

    def reset(self, seed=None, options=None):
        self.agents, self.agent_selection, self.n = ["a", "b"], "a", 0
        ends = dict.fromkeys(self.agents, False)
        self.dones, self.terminations, self.truncations = ends, ends, dict(ends)

    def observe(self, agent):
        return np.array([self.n])

    def last(self):
        agent = self.agent_selection
        ends = (self.dones[agent], False) if self.todays else (self.dones[agent],)
        return (self.observe(agent), 1.0, *ends, {"n": self.n})

    def step(self, action):
        if self.dones[self.agent_selection]:
            assert action is None
            self.agents.remove(self.agent_selection)
            self.agent_selection = self.agents[0] if self.agents else None
            return
        self.n += 1
        self.agent_selection = "ab"[self.n % 2]
        if self.n == 6:
            self.dones.update(a=True, b=True)


class AtOnce(Turns):
    """The same, all at once."""

    def reset(self, seed=None, options=None):
        self.agents, self.n = ["a", "b"], 0
        obs = dict.fromkeys(self.agents, np.zeros(1))
        return (obs, {}) if self.todays else obs

    def step(self, actions):
        self.n += 1
        obs, rewards, infos = (dict.fromkeys("ab", value) for value in (np.ones(1), 1.0, {}))
        ends = {"a": self.n == 3, "b": self.n == 3}
        return obs, rewards, *([ends, dict.fromkeys("ab", False)] if self.todays else [ends]), infos


@pytest.fixture
def wrappers():
    legacy.activate()
    from ray.rllib.env.wrappers import pettingzoo_env

    yield pettingzoo_env
    legacy.deactivate()


@pytest.mark.parametrize("todays", [False, True])
def test_agents_act_in_turn_and_both_observe_the_end(wrappers, todays):
    env = wrappers.PettingZooEnv(Turns(todays))
    assert (env.observation_space, env.action_space) == (BOX, MOVES)
    obs, seen = env.reset(), []
    done = {"__all__": False}
    while not done["__all__"]:
        (agent,) = obs
        obs, rewards, done, infos = env.step({agent: 0})
        seen.append("".join(obs))
    assert "".join(seen) == "babab" + "ab"
    assert done == {"a": True, "b": True, "__all__": True}
    assert rewards == {"a": 1.0, "b": 1.0}
    assert infos["a"] == {"n": 6}


@pytest.mark.parametrize("todays", [False, True])
def test_all_act_at_once(wrappers, todays):
    env = wrappers.ParallelPettingZooEnv(AtOnce(todays))
    assert set(env.reset()) == {"a", "b"}
    dones = [env.step({"a": 0, "b": 1})[2]["__all__"] for _ in range(3)]
    assert dones == [False, False, True]


def test_agents_of_different_spaces_are_an_error(wrappers):
    class Unequal(AtOnce):
        def action_space(self, agent):
            return gymnasium.spaces.Discrete(2 if agent == "a" else 3)

    with pytest.raises(ValueError, match="different action spaces"):
        wrappers.ParallelPettingZooEnv(Unequal(False))


def test_whoever_imports_gymnasium_has_todays_wrappers(wrappers, monkeypatch):
    monkeypatch.setenv("RLLIB_COMPAT_TODAYS_GYM", "1")
    assert "rllib_compat" not in legacy.lookup("ray.rllib.env", "PettingZooEnv").__module__
