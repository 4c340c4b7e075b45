"""Lists of varying length, as vectors, against what Ray 1.13.0's preprocessor made of them."""

import json
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from ray.rllib.utils.spaces.repeated import Repeated

from rllib_compat.adapters import EnvSettings, make_env
from rllib_compat.errors import LegacyEnvError
from rllib_compat.networks import ModelSettings
from rllib_compat.neutral import spaces
from rllib_compat.neutral.spaces import parse_repr
from rllib_compat.policy import preprocessor
from rllib_compat.runtime import flatten_value
from tests.legacy.atari import record_lists

RECORDED = json.loads(Path("tests/legacy/atari/lists.json").read_text("utf-8"))
SPACES = record_lists.spaces()


class Lists(gymnasium.Env):
    """Shows longer lists with each step."""

    def __init__(self, space):
        self.observation_space, self.action_space = space, gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        self.length = 0
        return record_lists.value(self.observation_space, 0), {}

    def step(self, _):
        self.length += 1
        seen = record_lists.value(self.observation_space, self.length)
        return seen, 1.0, self.length == 3, False, {}


@pytest.mark.parametrize("name", SPACES)
def test_an_environment_shows_the_vectors_that_the_old_ray_made(name):
    env = make_env(EnvSettings(lambda _: Lists(SPACES[name])), {})
    made = [env.reset()[0], *(env.step(0)[0] for _ in range(3))]
    assert all(map(env.observation_space.contains, made))
    flat = [gymnasium.spaces.flatten(env.observation_space, one) for one in made]
    np.testing.assert_array_equal(flat, RECORDED[name])


@pytest.mark.parametrize("name", SPACES)
def test_a_policy_without_ray_takes_lists(name):
    space = spaces.from_object(SPACES[name])
    batch = [record_lists.value(SPACES[name], length) for length in range(4)]
    settings = ModelSettings.from_config({}, {}, ray="1.13.0")
    made = preprocessor(space, settings, (space.flat_size(),), where="p")(batch)
    np.testing.assert_array_equal(made, RECORDED[name])


def test_the_old_api_stack_has_its_own_way_with_lists():
    space = SPACES["items"]
    env = make_env(EnvSettings(lambda _: Lists(space), old_stack=True), {})
    assert env.observation_space is space


def test_a_list_that_is_too_long_is_refused():
    space = spaces.Repeated(spaces.Discrete(2), 2)
    with pytest.raises(LegacyEnvError, match="max_len"):
        flatten_value(space, [0, 1, 0])


def test_its_text_is_read():
    kept = spaces.Repeated(spaces.Discrete(3), 4)
    assert parse_repr(repr(Repeated(gymnasium.spaces.Discrete(3), 4))) == kept
