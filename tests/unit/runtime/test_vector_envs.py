"""RLlib's VectorEnv, of the old API and of the last one."""

from types import SimpleNamespace

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector.utils import batch_space
from ray.rllib.algorithms.ppo import PPOConfig

from rllib_compat.adapters import EnvSettings, VectorEnvRunner, adapt_config, adapt_env
from rllib_compat.errors import LegacyEnvError
from rllib_compat.runtime import user_env
from rllib_compat.runtime.vector_envs import VectorAdapter, VectorEnvFound


class Sub:
    """Counts its steps; sub-environment i ends after 2 + i."""

    def __init__(self, index):
        self.index, self.at, self.resets = index, 0, 0

    def reset(self):
        self.at = 0
        self.resets += 1
        return np.array([0.0])

    def step(self, action):
        assert self.at < 2 + self.index, "stepped after its end"
        self.at += 1
        return np.array([float(self.at)]), float(action), self.at == 2 + self.index


class Old:
    """Ray 0.8 – 1.x."""

    observation_space, action_space = spaces.Box(-9, 9, (1,)), spaces.Discrete(4)

    def __init__(self, config):
        self.subs = [Sub(i) for i in range(config.get("n", 2))]
        self.num_envs = len(self.subs)

    def vector_reset(self):
        return [sub.reset() for sub in self.subs]

    def reset_at(self, index):
        return self.subs[index].reset()

    def vector_step(self, actions):
        obs, rewards, dones = zip(
            *[sub.step(a) for sub, a in zip(self.subs, actions, strict=True)], strict=True
        )
        return list(obs), list(rewards), list(dones), [{"i": sub.index} for sub in self.subs]

    def get_unwrapped(self):
        return self.subs


class New(Old):
    """Ray 2.3 and later."""

    def vector_reset(self, *, seeds=None, options=None):
        self.seeds = seeds
        return super().vector_reset(), [{}] * self.num_envs

    def reset_at(self, index, *, seed=None, options=None):
        return super().reset_at(index), {}

    def vector_step(self, actions):
        obs, rewards, dones, infos = super().vector_step(actions)
        return obs, rewards, dones, [False] * self.num_envs, infos


def make(env=Old, **settings):
    return VectorAdapter(env({"n": 2}), EnvSettings(env, **settings))


@pytest.mark.parametrize("kind", [Old, New])
def test_the_step_after_an_end_is_the_reset(kind):
    env = make(kind)
    obs, infos = env.reset(seed=7)
    assert obs.tolist() == [[0.0], [0.0]]
    assert infos == [{}, {}]
    steps = [env.step(np.array([1, 2])) for _ in range(5)]
    assert [s[0][:, 0].tolist() for s in steps] == [[1, 1], [2, 2], [0, 3], [1, 0], [2, 1]]
    assert [s[1].tolist() for s in steps] == [[1, 2], [1, 2], [0, 2], [1, 0], [1, 2]]
    ends = [[False, False], [True, False], [False, True], [False, False], [True, False]]
    assert [s[2].tolist() for s in steps] == ends
    assert not any(s[3].any() for s in steps)
    assert steps[0][4] == [{"i": 0}, {"i": 1}]
    if kind is New:
        assert env.env.seeds == [7, 8]


def test_horizon_and_clipping():
    env = make(horizon=1, clip_rewards=True)
    env.reset()
    _, rewards, terminated, truncated, _ = env.step(np.array([3, 0]))
    assert (rewards.tolist(), terminated.any(), truncated.all()) == ([1.0, 0.0], False, True)
    assert [sub.unclipped["agent0"] for sub in env.envs] == [3.0, 0.0], "it is what is reported"


def test_spaces_and_sub_environments():
    env = make()
    assert env.single_observation_space == Old.observation_space
    assert env.observation_space == batch_space(Old.observation_space, 2)
    assert [user_env(sub).index for sub in env.envs] == [0, 1]


def test_it_reaches_the_runner_past_gymnasium():
    with pytest.raises(VectorEnvFound) as found:
        adapt_env(EnvSettings(Old))({"n": 3})
    assert found.value.env.num_envs == 3


@pytest.mark.parametrize("settings", [{"multi_agent": True}, {"old_stack": True}])
def test_where_nobody_takes_it_is_one_clear_error(settings):
    with pytest.raises(LegacyEnvError, match="VectorEnv"):
        adapt_env(EnvSettings(Old, **settings))({})


def test_only_legacy_environments_get_the_runner():
    config = PPOConfig().environment("CartPole-v1")
    adapt_config(config)
    assert config.env_runner_cls is None
    config.environment(adapt_env(EnvSettings(Old)))
    adapt_config(config)
    assert config.env_runner_cls is VectorEnvRunner


def test_what_is_missing_is_one_clear_error():
    half = SimpleNamespace(vector_step=1, vector_reset=1, num_envs=1)
    with pytest.raises(LegacyEnvError, match="no reset_at"):
        VectorAdapter(half, EnvSettings(None))
