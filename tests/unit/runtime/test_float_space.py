"""Ray's filter on images, which are integers."""

import math

import gymnasium as gym
import numpy as np
import pytest

ray = pytest.importorskip("ray")

from rllib_compat.adapters import with_preprocessors  # noqa: E402


class Camera:
    observation_space = gym.spaces.Box(0, 255, (4, 4, 3), np.uint8)


def test_a_filter_on_uint8_images_gets_a_space_of_floats_and_not_an_error():
    from ray.rllib.connectors.env_to_module import MeanStdFilter

    def inner(*_):
        return MeanStdFilter(clip_by_value=math.inf)

    actions = gym.spaces.Discrete(2)
    floats, filter_ = with_preprocessors(inner, False, Camera())
    floats.input_action_space, floats.input_observation_space = actions, Camera.observation_space
    assert floats.observation_space == gym.spaces.Box(0, 255, (4, 4, 3), np.float32)
    filter_.input_action_space = actions
    filter_.input_observation_space = floats.observation_space
    assert filter_.observation_space.dtype == np.float32


class Counter:
    observation_space = gym.spaces.Box(0, 9, (2,), np.int64)


def test_a_vector_of_integers_reaches_the_module_as_floats():
    """Ray's modules die of integers: "mat1 and mat2 must have the same dtype"."""
    from ray.rllib.env.single_agent_episode import SingleAgentEpisode

    (floats,) = with_preprocessors(None, False, Counter())
    floats.input_action_space = gym.spaces.Discrete(2)
    floats.input_observation_space = Counter.observation_space
    assert floats.observation_space.dtype == np.float32
    episode = SingleAgentEpisode(
        observations=[np.array([3, 4])], observation_space=Counter.observation_space
    )
    floats(batch={}, episodes=[episode])
    episode.add_env_step(np.array([5.0, 6.0]).astype(int), 0, 1.0)
    floats(batch={}, episodes=[episode])
    for seen, values in zip(episode.get_observations(slice(0, 2)), ([3, 4], [5, 6]), strict=True):
        assert (seen.dtype, seen.tolist()) == (np.float32, values)


def test_images_without_a_filter_go_in_as_they_are():
    assert with_preprocessors(None, False, Camera()) == []


class Board:
    observation_space = gym.spaces.Box(0, 255, (6, 4), np.uint8)


def test_a_table_of_integers_reaches_the_module_as_one_row_of_floats():
    """Ray's networks take vectors and images: "shapes cannot be multiplied (6x4 and 24x10)"."""
    from ray.rllib.env.single_agent_episode import SingleAgentEpisode

    (flat,) = with_preprocessors(None, False, Board())
    flat.input_action_space = gym.spaces.Discrete(2)
    flat.input_observation_space = Board.observation_space
    assert flat.observation_space.shape == (24,)
    seen = np.arange(24, dtype=np.uint8).reshape(6, 4)
    episode = SingleAgentEpisode(observations=[seen], observation_space=Board.observation_space)
    flat(rl_module=None, batch={}, episodes=[episode], explore=False, shared_data={})
    given = np.asarray(episode.get_observations(-1))
    assert (given.dtype, given.tolist()) == (np.float32, list(range(24)))
