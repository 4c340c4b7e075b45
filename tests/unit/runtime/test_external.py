"""External simulators, which run in a thread and ask for their actions."""

import contextlib
import functools
import queue

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.env.external_env import ExternalEnv
from ray.rllib.env.external_multi_agent_env import ExternalMultiAgentEnv
from ray.rllib.env.single_agent_episode import SingleAgentEpisode

from rllib_compat.adapters import EnvSettings, LoggedActions, adapt_config, adapt_env, make_env
from rllib_compat.errors import LegacyEnvError, ObservationError

OBS, ACT = spaces.Box(-10, 10, (1,)), spaces.Discrete(4)


def until_nobody_asks(run):
    """Ray's episodes give up after a minute without a step, as when a test is over."""

    @functools.wraps(run)
    def quiet(self):
        with contextlib.suppress(queue.Empty):
            run(self)

    return quiet


class Counting(ExternalEnv):
    """Episodes of three steps; the observation counts, the reward is the action."""

    episodes = 1000
    training = True

    def __init__(self, config):
        super().__init__(ACT, OBS)
        self.config = config

    @until_nobody_asks
    def run(self):
        for _ in range(self.episodes):
            episode = self.start_episode(training_enabled=self.training)
            for t in range(3):
                action = self.act(episode, np.array([t]))
                self.log_returns(episode, float(action), {"t": t})
            self.end_episode(episode, np.array([3]))

    def act(self, episode, obs):
        return self.get_action(episode, obs)


class Logging(Counting):
    def act(self, episode, obs):
        self.log_action(episode, obs, 3)
        return 3


class TwoCounting(ExternalMultiAgentEnv):
    def __init__(self, config):
        super().__init__(ACT, OBS)

    @until_nobody_asks
    def run(self):
        while True:
            episode = self.start_episode()
            for t in range(2):
                actions = self.get_action(episode, {"a": [t], "b": [-t]})
                self.log_returns(episode, {k: float(v) for k, v in actions.items()})
            self.end_episode(episode, {"a": [2], "b": [-2]})


def make(env, **settings):
    return make_env(EnvSettings(env, **settings), {"x": 1})


def test_the_threads_questions_are_answered():
    env = make(Counting)
    for _ in range(2):
        obs, _ = env.reset()
        steps = [env.step(action) for action in (1, 2, 3)]
        assert [obs[0], *(step[0][0] for step in steps)] == [0, 1, 2, 3]
        assert [step[1] for step in steps] == [1.0, 2.0, 3.0]
        assert [step[2] for step in steps] == [False, False, True]
        assert steps[1][4] == {"t": 1}
    assert env.config == {"x": 1}


def test_a_reset_in_the_middle_goes_on_where_the_simulator_is():
    env = make(Counting, horizon=2)
    env.reset()
    env.step(1)
    obs, _, terminated, truncated, _ = env.step(1)
    assert (obs[0], terminated, truncated) == (2, False, True)
    assert env.reset()[0] == obs
    assert env.step(1)[2]


def test_many_agents():
    env = make(
        TwoCounting,
        multi_agent=True,
        policy_spaces={"p": (OBS, ACT)},
        policy_mapping_fn=lambda agent: "p",
    )
    obs, _ = env.reset()
    assert set(obs) == {"a", "b"}
    _, rewards, terminateds, *_ = env.step({"a": 1, "b": 2})
    assert rewards == {"a": 1.0, "b": 2.0}
    assert not terminateds["__all__"]
    obs, _, terminateds, *_ = env.step({"a": 1, "b": 2})
    assert terminateds["__all__"]
    assert obs["b"] == [-2.0]


def test_the_episode_holds_the_action_that_was_logged():
    env = make(Logging)
    seen, told = ([part] for part in env.reset())
    episode = SingleAgentEpisode(observations=seen, infos=told, len_lookback_buffer=0)
    batch = LoggedActions()(batch={"actions": {(episode.id_,): [0]}}, episodes=[episode])
    assert batch["actions"] == {(episode.id_,): [3]}
    assert env.step(0)[1] == 3.0


@pytest.mark.parametrize("env", [Counting, gymnasium.make("CartPole-v1")])
def test_only_external_environments_need_the_connector(env):
    config = PPOConfig()
    config.environment(adapt_env(EnvSettings(env)))
    adapt_config(adapt_config(config))
    made = gymnasium.vector.SyncVectorEnv([lambda: make(Counting) if env is Counting else env])
    pipeline = config.build_module_to_env_connector(made)
    found = [type(c).__name__ for c in pipeline.connectors].count("LoggedActions")
    assert found == (env is Counting)


def test_a_thread_that_ends_is_an_error_and_no_wait_for_ever():
    class Once(Counting):
        episodes = 0

    with pytest.raises(LegacyEnvError, match="thread of Once has ended"):
        make(Once).reset()


def test_episodes_that_are_not_to_be_learned_from_are_an_error():
    class Untrained(Counting):
        training = False

    with pytest.raises(LegacyEnvError, match="training_enabled"):
        make(Untrained).reset()


def test_the_old_stack_polls_them():
    env = make(Counting, old_stack=True)
    seen = []
    while len(seen) < 8:
        obs, rewards, terminateds, *_ = env.poll()
        for number in obs:
            seen.append((obs[number]["agent0"][0], rewards[number]["agent0"]))
            if not terminateds[number]["__all__"]:
                env.send_actions({number: {"agent0": 1}})
    assert seen[:8] == [(0, 0.0), (1, 1.0), (2, 1.0), (3, 1.0)] * 2


class Mistaken(ExternalMultiAgentEnv):
    """One agent shows what the other one does, and not what its space says."""

    def __init__(self, config):
        super().__init__(ACT, OBS)

    @until_nobody_asks
    def run(self):
        self.get_action(self.start_episode(), {"a": [0], "b": [0, 0]})


@pytest.mark.parametrize("mapping", [lambda agent: "p", lambda agent, episode, **_: "p"])
def test_the_old_stack_names_the_agent_whose_observation_does_not_fit(mapping):
    env = make(
        Mistaken,
        old_stack=True,
        multi_agent=True,
        policy_spaces={"p": (OBS, ACT)},
        policy_mapping_fn=mapping,
    )
    with pytest.raises(
        ObservationError, match=r"An observation of 'b' does not fit it \(its shape is \(2,\)\)"
    ):
        env.poll()


def test_the_old_stack_takes_agents_whose_policy_only_an_episode_has():
    def choose(agent, episode):
        return episode.policy

    env = make(
        TwoCounting,
        old_stack=True,
        multi_agent=True,
        policy_spaces={"p": (ACT, ACT)},
        policy_mapping_fn=choose,
    )
    obs, *_ = env.poll()
    assert obs == {0: {"a": [0], "b": [0]}}
