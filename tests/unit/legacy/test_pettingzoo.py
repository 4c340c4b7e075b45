"""Ray's wrappers of PettingZoo as they were, around environments of its older and newer APIs."""

import gymnasium
import numpy as np
import pytest

pytest.importorskip("ray")

from rllib_compat import legacy
from rllib_compat.adapters import EnvSettings
from rllib_compat.runtime.multi_agent import adapt_multi_agent
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


class Oldest(Turns):
    """The API until PettingZoo 1.4: `last` has no observation, and agents stay in the list."""

    observation_spaces, action_spaces = dict.fromkeys("ab", BOX), dict.fromkeys("ab", MOVES)
    observation_space = action_space = property()

    def reset(self, observe=True):
        super().reset()

    def last(self):
        return super().last()[1:]

    def step(self, action, observe=True):
        if self.dones[self.agent_selection]:
            self.n += 1
            self.agent_selection = "ab"[self.n % 2]
        else:
            super().step(action)


def test_the_oldest_api_ends_with_all_agents(wrappers):
    env = wrappers.PettingZooEnv(Oldest(False))
    obs, done = env.reset(), {"__all__": False}
    for _ in range(6):
        assert not done["__all__"]
        obs, rewards, done, _ = env.step(dict.fromkeys(obs, 0))
    assert done == {"a": True, "b": True, "__all__": True}
    assert (set(obs), rewards) == ({"a", "b"}, {"a": 1.0, "b": 1.0})


class Leaves(AtOnce):
    """One agent ends before the other; PettingZoo takes no action of it from then on."""

    def step(self, actions):
        assert set(actions) == set(self.agents)
        obs, rewards, *_, infos = super().step(actions)
        ends = {agent: self.n == (1 if agent == "a" else 3) for agent in self.agents}
        present = [{agent: found[agent] for agent in ends} for found in (obs, rewards, infos)]
        self.agents = [agent for agent, end in ends.items() if not end]
        return *present[:2], *([ends, dict.fromkeys(ends, False)] if self.todays else [ends]), infos


@pytest.mark.parametrize("todays", [False, True])
@pytest.mark.parametrize("kind", [Turns, AtOnce, Leaves])
def test_a_trainers_env_runner_plays_them_to_the_end(wrappers, kind, todays):
    wrap = wrappers.PettingZooEnv if kind is Turns else wrappers.ParallelPettingZooEnv
    inner = kind(todays)
    inner.possible_agents = ["a", "b"]
    made = wrap(inner)
    assert (made.agents, made.observation_spaces["b"], made.action_space) == (
        ["a", "b"],
        BOX,
        MOVES,
    )
    env = adapt_multi_agent(made, EnvSettings(None))
    assert env.possible_agents == ["a", "b"]
    assert env.get_action_space("b") == MOVES
    for seed in (None, 3):
        obs, _ = env.reset(seed=seed)
        ended, steps = {"__all__": False}, 0
        while not ended["__all__"]:
            acting = [agent for agent in obs if not ended.get(agent)]
            obs, _, ended, _, _ = env.step(dict.fromkeys(acting, 0))
            steps += 1
        assert steps == (6 if kind is Turns else 3)


def test_agents_of_different_spaces_are_an_error(wrappers):
    class Unequal(AtOnce):
        def action_space(self, agent):
            return gymnasium.spaces.Discrete(2 if agent == "a" else 3)

    with pytest.raises(ValueError, match="different action spaces"):
        wrappers.ParallelPettingZooEnv(Unequal(False))


def test_whoever_imports_gymnasium_has_todays_wrappers(wrappers, monkeypatch):
    monkeypatch.setenv("RLLIB_COMPAT_TODAYS_GYM", "1")
    assert "rllib_compat" not in legacy.lookup("ray.rllib.env", "PettingZooEnv").__module__
