"""Environments of every age, without starting Ray."""

import sys
from dataclasses import replace
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec
from ray import cloudpickle
from ray.rllib.env.env_context import EnvContext
from ray.rllib.env.multi_agent_env import MultiAgentEnv
from ray.rllib.env.multi_agent_episode import MultiAgentEpisode

from rllib_compat.adapters import EnvSettings, adapt_env
from rllib_compat.errors import LegacyEnvError
from rllib_compat.neutral import spaces as records
from rllib_compat.runtime import (
    find_creator,
    placeholder_env,
    placeholder_multi_agent_env,
    resolve_env_name,
    with_default_policy,
)
from rllib_compat.runtime.gym_api import GymAdapter, caster
from rllib_compat.runtime.multi_agent import MultiAgentAdapter
from rllib_compat.runtime.placeholders import Placeholder


class Box:
    """A space of the gym package, as duck typing sees it."""

    low, high, shape, dtype = np.full(2, -1.0), np.full(2, 1.0), (2,), np.dtype("float32")


class OldEnv:
    """The API of gym 0.10: no seed in reset, four values, spaces of another package."""

    observation_space = Box()
    action_space = spaces.Discrete(2)

    def __init__(self, config=None):
        self.config = config
        self.seeded = None
        self.resets = 0
        self.steps = 0

    def seed(self, seed):
        self.seeded = seed

    def reset(self):
        self.resets += 1
        self.steps = 0
        return [0, 0]

    def step(self, action):
        self.steps += 1
        return [self.steps, action], -3, self.steps == 5, {"steps": self.steps}

    def render(self, mode="human"):
        return mode


class TodaysEnv(gymnasium.Env):
    observation_space = spaces.Box(-1, 1, (2,))
    action_space = spaces.Discrete(2)

    def __init__(self, config=None):
        self.config = config

    def reset(self, *, seed=None, options=None):
        return self.observation_space.low, {}

    def step(self, action):
        return self.observation_space.low, 1.0, False, False, {}


class OldAgents:
    """An old MultiAgentEnv: nothing says who the agents are or what they see."""

    def __init__(self, config=None):
        self.steps = 0

    def reset(self):
        self.steps = 0
        return {0: [0.0, 0.0], 1: [0.0, 0.0]}

    def step(self, actions):
        self.steps += 1
        done = self.steps == 4
        obs = {agent: [1.0, 2.0] for agent in actions}
        rewards = dict.fromkeys(actions, 7)
        return obs, rewards, {0: done, 1: done, "__all__": done}, {0: {"x": 1}, "common": {}}


OBS, ACT = spaces.Box(-5, 5, (2,)), spaces.Discrete(3)
TWO = {"p0": (OBS, ACT), "p1": (OBS, spaces.Discrete(4))}


def two(**settings):
    return EnvSettings(
        OldAgents,
        multi_agent=True,
        policy_spaces=TWO,
        policy_mapping_fn=lambda agent: f"p{agent}",
        **settings,
    )


def make(settings, **context):
    return adapt_env(settings)(EnvContext(context, worker_index=3))


def play(env, action=1):
    """Plays one episode and returns its steps."""
    env.reset()
    steps = []
    while not steps or not (np.any(steps[-1][2]) or np.any(steps[-1][3])):
        steps.append(env.step(action))
    return steps


def test_the_old_api_becomes_gymnasiums():
    env = make(EnvSettings(OldEnv), size=4)
    assert isinstance(env, gymnasium.Env)
    assert env.observation_space == spaces.Box(-1, 1, (2,))
    obs, info = env.reset(seed=5)
    assert (obs.dtype, obs.shape, info) == (np.float32, (2,), {})
    assert env.seeded == 5
    obs, reward, terminated, truncated, info = env.step(1)
    assert obs.tolist() == [1, 1]
    assert (reward, terminated, truncated, info) == (-3.0, False, False, {"steps": 1})
    assert env.render(mode="ansi") == "ansi"
    assert env.config == {"size": 4}
    assert env.config.worker_index == 3


def test_parts_of_observations_fit_their_spaces():
    space = spaces.Tuple([spaces.Box(0, 9, (2,)), spaces.Dict({"on": spaces.Discrete(2)})])
    cast = caster(space)
    obs = cast([[1, 2], {"on": 1, "more": [3]}])
    assert space[0].contains(obs[0])
    assert obs[1] == {"on": 1, "more": [3]}
    with pytest.raises(ValueError, match="zip"):
        cast([[1, 2]])


def test_gymnasiums_checker_has_nothing_to_say():
    env = gymnasium.wrappers.PassiveEnvChecker(make(EnvSettings(OldEnv)))
    assert len(play(env)) == 5


def test_done_is_termination_unless_gyms_time_limit_said_otherwise():
    assert play(make(EnvSettings(OldEnv)))[-1][2:4] == (True, False)

    class Limited(OldEnv):
        def step(self, action):
            *rest, info = super().step(action)
            return *rest, {**info, "TimeLimit.truncated": True}

    assert play(make(EnvSettings(Limited)))[-1][2:4] == (False, True)


@pytest.mark.parametrize("env", [OldEnv, "CartPole-v1", TodaysEnv])
def test_horizon_truncates(env):
    steps = play(make(EnvSettings(env, horizon=3)), action=0)
    assert len(steps) == 3
    assert steps[-1][2:4] == (False, True)


def test_soft_horizon_goes_on_without_a_reset():
    env = make(EnvSettings(OldEnv, horizon=2, soft_horizon=True))
    play(env)
    assert env.reset()[0].tolist() == [2, 1]
    assert env.env.resets == 1
    assert env.step(1)[0].tolist() == [3, 1]


def test_no_done_at_end_makes_every_end_a_truncation():
    assert play(make(EnvSettings(OldEnv, no_done_at_end=True)))[-1][2:4] == (False, True)


@pytest.mark.parametrize(
    ("clip", "reward"), [(True, -1.0), (2.0, -2.0), (5.0, -3.0), (False, -3.0)]
)
def test_rewards_are_clipped_by_sign_or_limit(clip, reward):
    assert play(make(EnvSettings(OldEnv, clip_rewards=clip)))[0][1] == reward


def test_environments_of_one_runner_get_their_own_vector_index():
    context = EnvContext({}, worker_index=2)
    env = adapt_env(EnvSettings(OldEnv))
    assert [env(context).config.vector_index for _ in range(3)] == [0, 1, 2]


def test_nothing_is_wrapped_that_needs_no_wrapping():
    assert adapt_env(EnvSettings("CartPole-v1")) == "CartPole-v1"
    assert adapt_env(EnvSettings(TodaysEnv, preprocessor_pref=None)) is TodaysEnv
    assert isinstance(make(EnvSettings(TodaysEnv)), TodaysEnv)
    assert adapt_env(EnvSettings(None)) is None
    assert isinstance(make(EnvSettings(lambda config: TodaysEnv())), TodaysEnv)


def test_what_makes_the_environment_crosses_processes():
    env = cloudpickle.loads(cloudpickle.dumps(adapt_env(EnvSettings(OldEnv, horizon=2))))
    assert len(play(env(EnvContext({}, 1)))) == 2


def test_a_dotted_path_is_imported():
    path = f"{TodaysEnv.__module__}:TodaysEnv"
    assert isinstance(make(EnvSettings(path)), TodaysEnv)
    assert isinstance(make(EnvSettings(path.replace(":", "."))), TodaysEnv)


class Named:
    """Made by arguments, by a context, or with neither."""

    def __init__(self, env_config=None, *, size=0):
        self.made_of = (env_config, size)


def test_what_a_path_names_gets_env_config_as_its_arguments_if_it_takes_such():
    make = find_creator(f"{__name__}.Named")
    assert make({"env_config": {"a": 1}, "size": 2}).made_of == ({"a": 1}, 2)
    assert make({"other": 1}).made_of == ({"other": 1}, 0)
    assert make({}).made_of == ({}, 0)


def test_a_registered_name_comes_before_gymnasiums():
    from ray.tune.registry import register_env

    register_env("CartPole-v1", OldEnv)
    try:
        assert make(EnvSettings("CartPole-v1")).observation_space.shape == (2,)
    finally:
        from ray.tune.registry import ENV_CREATOR, _global_registry

        _global_registry.unregister(ENV_CREATOR, "CartPole-v1")


def test_an_installed_gym_is_honoured(monkeypatch):
    def spec(name):
        if name != "OnlyInGym-v0":
            raise LookupError(name)

    monkeypatch.setitem(sys.modules, "gym", SimpleNamespace(spec=spec, make=lambda _: OldEnv()))
    assert isinstance(make(EnvSettings("OnlyInGym-v0")).env, OldEnv)


@pytest.mark.parametrize(
    ("name", "resolved", "note"),
    [
        ("CartPole-v1", "CartPole-v1", None),
        ("CartPole-v0", "CartPole-v0", "newest version is `CartPole-v1`"),
        ("Pendulum-v0", "Pendulum-v1", "has no `Pendulum-v0`"),
        ("Museum-v1", "Museum-v4", "has no `Museum-v1`"),
        ("NobodyKnows-v3", "NobodyKnows-v3", None),
    ],
)
def test_names_resolve_to_what_gymnasium_offers(name, resolved, note, monkeypatch):
    def _raise_that_it_was_removed():
        raise AssertionError

    for version, entry in ((2, _raise_that_it_was_removed), (5, OldEnv), (4, OldEnv)):
        spec = gymnasium.envs.registration.EnvSpec(f"Museum-v{version}", entry)
        monkeypatch.setitem(gymnasium.registry, spec.id, spec)
    found, said = resolve_env_name(name)
    assert found == resolved
    assert said is None if note is None else note in said


@pytest.mark.parametrize(
    ("env", "message"),
    [
        ("NobodyKnows-v3", "There is no environment `NobodyKnows-v3`"),
        (lambda _: object(), "has no reset and no step and no observation_space"),
    ],
)
def test_what_fits_no_api_is_one_clear_error(env, message):
    with pytest.raises(LegacyEnvError, match=message):
        make(EnvSettings(env))


def test_a_space_of_no_known_kind_is_an_error():
    class Odd(OldEnv):
        observation_space = SimpleNamespace()

    with pytest.raises(LegacyEnvError, match="not a space of gym or gymnasium"):
        make(EnvSettings(Odd))


class OldMultiAgent(MultiAgentEnv):
    def __init__(self, context):
        self.context = context


class TestMultiAgent:
    def test_agents_and_spaces_are_derived(self):
        env = make(two())
        assert isinstance(env, MultiAgentEnv)
        assert env.possible_agents == [0, 1]
        assert env.get_observation_space(0) == OBS
        assert env.action_spaces == {0: ACT, 1: spaces.Discrete(4)}

    def test_actions_come_in_the_order_of_the_observations(self):
        """Environments of teams took `list(action_dict.values())`."""
        env = make(two())
        obs, _ = env.reset()
        taken, step = [], env.env.step
        env.env.step = lambda actions: taken.append(list(actions)) or step(actions)
        env.step({1: 1, 0: 1})
        assert taken == [list(obs)] == [[0, 1]]

    def test_dones_become_terminations(self):
        env = make(two())
        obs, infos = env.reset(seed=1)
        assert obs[0].dtype == np.float32
        assert infos == {}
        steps = [env.step({0: 1, 1: 1}) for _ in range(4)]
        obs, rewards, terminateds, truncateds, infos = steps[-1]
        assert rewards == {0: 7.0, 1: 7.0}
        assert terminateds == {0: True, 1: True, "__all__": True}
        assert truncateds == {"__all__": False}
        assert infos == {0: {"x": 1}}

    def test_horizon_truncates_everybody(self):
        env = make(two(horizon=2))
        env.reset()
        env.step({0: 1, 1: 1})
        _, _, terminateds, truncateds, _ = env.step({0: 1, 1: 1})
        assert not terminateds["__all__"]
        assert truncateds == {"__all__": True}

    @pytest.mark.parametrize(
        "cut", [{"horizon": 2}, {"horizon": 2, "soft_horizon": True}, {"no_done_at_end": True}]
    )
    def test_a_cut_episode_has_a_last_observation_of_agents_that_wait(self, cut):
        """They take turns; today's Ray raises an error of its own without.

        Nor is it terminated, as Ray takes it where each agent is truncated by itself.
        """

        class Turns(OldAgents):
            def reset(self):
                return {0: super().reset()[0]}

            def step(self, actions):
                _, rewards, dones, _ = super().step(actions)
                turn = self.steps % 2
                return {turn: [self.steps, 0.0]}, rewards, {"__all__": dones["__all__"]}, {}

        env = make(replace(two(**cut), env=Turns))
        for _ in range(2):
            episode, cut_off, turn = MultiAgentEpisode(), False, 0
            obs, infos = env.reset()
            episode.add_env_reset(observations=obs, infos=infos)
            while not cut_off:
                actions = {next(iter(obs)): turn % 3}
                obs, rewards, terminateds, truncateds, infos = env.step(actions)
                episode.add_env_step(
                    obs, actions, rewards, infos, terminateds=terminateds, truncateds=truncateds
                )
                turn, cut_off = turn + 1, truncateds["__all__"] or terminateds["__all__"]
            parts = episode.agent_episodes.values()
            assert [len(part) for part in parts] == [turn // 2] * 2
            assert all(part.is_truncated is truncateds["__all__"] for part in parts)
            assert all(part.is_terminated is terminateds["__all__"] for part in parts)

    def test_observations_are_joined_as_the_config_says(self):
        def both(agent_obs, **_):
            return {a: np.concatenate([agent_obs[a], agent_obs[1 - a]]) for a in agent_obs}

        space = spaces.Box(-10, 10, (4,))
        settings = EnvSettings(
            OldAgents,
            multi_agent=True,
            policy_spaces={"p": (space, spaces.Discrete(2))},
            policy_mapping_fn=lambda agent: "p",
            observation_fn=both,
        )
        env = make(settings)
        obs, _ = env.reset()
        assert env.observation_spaces[0] == space
        assert obs[0].shape == (4,)
        assert len(env.last_raw_obs[0]) == 2

    def test_an_agent_that_shows_up_later_is_met_then(self):
        class Later(OldAgents):
            def reset(self):
                return {0: [0.0, 0.0]}

        settings = EnvSettings(
            Later,
            multi_agent=True,
            policy_spaces={"p": (OBS, ACT)},
            policy_mapping_fn=lambda _: "p",
        )
        env = make(settings)
        env.reset()
        assert env.possible_agents == [0]
        env.step({0: 1, 5: 1})
        assert env.possible_agents == [0, 5]

    def test_one_agent_under_policies_is_agent0(self):
        env = make(EnvSettings(OldEnv, multi_agent=True))
        assert env.possible_agents == ["agent0"]
        assert list(env.reset()[0]) == ["agent0"]
        assert env.step({"agent0": 1})[2] == {"agent0": False, "__all__": False}

    def test_an_agent_without_spaces_is_an_error(self):
        with pytest.raises(LegacyEnvError, match="observation_space of agent 0"):
            make(EnvSettings(OldAgents, multi_agent=True))

    def test_many_agents_need_policies(self):
        with pytest.raises(LegacyEnvError, match="the config has no policies"):
            make(EnvSettings(type("Agents", (OldAgents, MultiAgentEnv), {})))

    def test_dones_without_all_are_an_error(self):
        class Open(OldAgents):
            def step(self, actions):
                return {}, {}, {0: False}, {}

        env = MultiAgentAdapter(Open(), two())
        env.reset()
        with pytest.raises(LegacyEnvError, match="without `__all__`"):
            env.step({0: 1})


class TestPlaceholders:
    OBS, ACT = records.box(-1, 1, (4,)), records.Discrete(2)

    def test_has_the_spaces_and_no_world(self):
        creator, config = placeholder_env("Nowhere-v0", self.OBS, self.ACT, {"size": 1})
        env = creator(EnvContext(config, 0))
        assert env.observation_space == spaces.Box(-1, 1, (4,))
        assert env.action_space == spaces.Discrete(2)
        with pytest.raises(LegacyEnvError, match="register_env"):
            env.reset()

    def test_stands_for_what_gymnasium_lists_and_cannot_make(self, monkeypatch):
        spec = EnvSpec("NeedsAPackage-v0", entry_point="no_such_package.envs:Env")
        monkeypatch.setitem(gymnasium.registry, spec.id, spec)
        creator, config = placeholder_env(spec.id, self.OBS, self.ACT)
        env = creator(EnvContext(config, 0))
        assert env.action_space == spaces.Discrete(2)
        with pytest.raises(LegacyEnvError, match="No module named 'no_such_package'"):
            env.reset()

    def test_makes_the_real_one_where_it_is_known(self):
        creator, config = placeholder_env("CartPole-v1", self.OBS, self.ACT)
        assert creator(EnvContext(config, 0)).unwrapped.spec.id == "CartPole-v1"

    def test_is_pickled_by_name(self):
        creator, _ = placeholder_env("Nowhere-v0", self.OBS, self.ACT)
        assert len(cloudpickle.dumps(creator)) < 200

    def test_one_agent_a_policy(self):
        creator, config = placeholder_multi_agent_env(None, {"a": (self.OBS, self.ACT)})
        env = creator(EnvContext(config, 0))
        assert isinstance(env, MultiAgentEnv)
        assert env.possible_agents == ["a"]
        assert not isinstance(env, Placeholder)
        with pytest.raises(LegacyEnvError, match="a checkpoint does not store it"):
            env.step({})


def test_attributes_of_the_wrapped_environment_are_there():
    env = GymAdapter(OldEnv(), EnvSettings(OldEnv))
    assert env.seeded is None
    with pytest.raises(AttributeError):
        env.nothing_of_that_name  # noqa: B018


class TestWithoutPolicies:
    @pytest.mark.parametrize("env", [OldMultiAgent, lambda context: OldMultiAgent(context["x"])])
    def test_all_agents_share_one_policy(self, env):
        config = {"env": env, "env_config": {"x": 1}, "multiagent": {"count_steps_by": "env_steps"}}
        multi_agent = with_default_policy(config)["multiagent"]
        assert set(multi_agent["policies"]) == {"shared_policy"}
        assert multi_agent["policy_mapping_fn"]("anybody", None, worker=None) == "shared_policy"
        assert multi_agent["count_steps_by"] == "env_steps"

    def test_a_registered_name_is_looked_at(self):
        from ray.tune.registry import ENV_CREATOR, _global_registry, register_env

        register_env("many", OldMultiAgent)
        try:
            assert "multiagent" in with_default_policy({"env": "many"})
        finally:
            _global_registry.unregister(ENV_CREATOR, "many")

    def test_an_environment_named_by_its_path_is_looked_at(self):
        path = f"{__name__}.{OldMultiAgent.__name__}"
        assert "multiagent" in with_default_policy({"env": path, "env_config": {"x": 1}})

    @pytest.mark.parametrize(
        "config",
        [
            {"env": OldEnv},
            {"env": "CartPole-v1"},
            {"env": "nowhere.to.be.Found"},
            {"env": OldMultiAgent, "multiagent": {"policies": {"p": (None, None, None, {})}}},
            {"env": lambda context: context["missing"]},
            {},
        ],
    )
    def test_nothing_else_is_touched(self, config):
        assert with_default_policy(config) == config
