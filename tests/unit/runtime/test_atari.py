"""Atari games in the DeepMind wrappers: told by the environment, not by its name."""

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec

from rllib_compat.runtime.envs import EnvSettings, adapt_env, make_env


class Game(gymnasium.Env):
    """What `ale_py` makes, as far as RLlib ever looked."""

    ale = object()
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, shape=(210, 160, 3), spec=None):
        self.observation_space = gymnasium.spaces.Box(0, 255, shape, np.uint8)
        self.spec = spec

    def reset(self, *, seed=None, options=None):
        return self.observation_space.sample(), {}

    def step(self, action):
        return self.observation_space.sample(), 7.0, False, False, {}


@pytest.fixture
def told(monkeypatch):
    """What Ray's wrappers were told, one entry a call."""
    from ray.rllib.env.wrappers import atari_wrappers

    calls = []

    def wrap(env, **how):
        calls.append(how)
        return env

    monkeypatch.setattr(atari_wrappers, "wrap_atari_for_new_api_stack", wrap)
    return calls


def made(spec=None, shape=(210, 160, 3), **settings):
    return make_env(EnvSettings(lambda _: Game(shape, spec), **settings), {})


def test_a_creator_of_ones_own_gets_the_wrappers_and_clipped_rewards(told):
    env = made()
    assert told == [{"dim": 84, "framestack": 4, "frameskip": 1}]
    env.reset()
    assert env.step(0)[1] == 1.0


@pytest.mark.parametrize(
    ("spec", "skip"),
    [
        (EnvSpec("PongNoFrameskip-v4", entry_point="a:B"), 4),
        (EnvSpec("ALE/Pong-v5", entry_point="a:B", kwargs={"frameskip": 4}), 1),
        (EnvSpec("ALE/Pong-v5", entry_point="a:B", kwargs={"frameskip": 1}), 4),
        (EnvSpec("PongDeterministic-v4", entry_point="a:B", kwargs={"frameskip": 4}), 1),
    ],
    ids=lambda it: f"{it.id}-{it.kwargs}" if isinstance(it, EnvSpec) else str(it),
)
def test_frames_are_skipped_where_the_game_skips_none(told, spec, skip):
    made(spec)
    assert told[0]["frameskip"] == skip


def test_rewards_stay_whole_where_the_config_says_so(told):
    env = made(clip_rewards=False)
    env.reset()
    assert env.step(0)[1] == 7.0
    assert told


@pytest.mark.parametrize(
    "settings", [{"preprocessor_pref": "rllib"}, {"shape": (128,)}, {"old_stack": True}]
)
def test_no_wrappers(told, settings):
    made(**settings)
    assert not told


def test_other_environments_stay_what_they_are():
    assert adapt_env(EnvSettings("CartPole-v1")) == "CartPole-v1"
