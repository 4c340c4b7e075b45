"""The old gym API over gymnasium."""

import gymnasium
import numpy as np

from rllib_compat import gym
from rllib_compat.adapters import EnvSettings
from rllib_compat.runtime import adapt_single_agent


def test_an_environment_that_code_makes_itself_has_the_old_api():
    env = gym.make("Pendulum-v0")
    assert env.seed(5) == [5]
    obs = env.reset()
    assert obs.shape == (3,)
    assert not np.array_equal(env.reset(), obs)
    env.seed(5)
    assert np.array_equal(env.reset(), obs)
    obs, _, done, info = env.step(env.action_space.sample())
    assert (done, info) == (False, {})
    env.close()


def test_the_mode_is_asked_for_when_rendering():
    env = gym.make("FrozenLake-v1")
    env.reset()
    assert "SFFF" in env.render(mode="ansi").replace("\x1b[41mS\x1b[0m", "S")


def test_the_time_limit_tells_itself_by_info():
    env = gym.make("CartPole-v1", max_episode_steps=1)
    env.reset()
    assert env.step(0)[2:] == (True, {"TimeLimit.truncated": True})


def test_it_goes_back_into_the_trainer_like_any_other():
    env = adapt_single_agent(gym.make("CartPole-v1", max_episode_steps=1), EnvSettings(None))
    assert env.reset(seed=3)[1] == {}
    assert env.step(0)[2:] == (False, True, {"TimeLimit.truncated": True})


def test_all_other_names_are_gymnasiums():
    assert issubclass(gym.Env, gymnasium.Env)
    assert gym.spaces.Box is gymnasium.spaces.Box
    assert issubclass(
        gym.envs.classic_control.CartPoleEnv, gymnasium.envs.classic_control.CartPoleEnv
    )
    assert not hasattr(gym, "no_such_name")
