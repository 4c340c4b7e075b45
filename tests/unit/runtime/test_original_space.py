"""Spaces that connectors make tell what they were made of: networks have to know."""

import pickle
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest

pytest.importorskip("ray")

from rllib_compat.adapters import mean_std_filter, with_preprocessors, with_previous_steps
from tests.marks import OTHERS_WARNINGS

pytestmark = OTHERS_WARNINGS

SEEN = gymnasium.spaces.Dict(
    {
        "camera": gymnasium.spaces.Box(0, 255, (8, 8, 3), np.uint8),
        "speed": gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32),
    }
)
ACTS = gymnasium.spaces.Discrete(3)


def last_space(connectors):
    seen = SEEN
    for connector in connectors:
        connector.input_action_space = ACTS
        connector.input_observation_space = seen
        seen = connector.observation_space
    return seen


@pytest.mark.parametrize("inner", [None, mean_std_filter])
def test_flat_and_filtered_observations_tell_their_parts(inner):
    env = SimpleNamespace(observation_space=SEEN)
    space = last_space(with_preprocessors(inner, False, env))
    assert space.shape == (8 * 8 * 3 + 2,)
    assert space.original_space == SEEN
    assert pickle.loads(pickle.dumps(space)).original_space == SEEN


def test_observations_with_the_step_before_tell_their_parts():
    env = SimpleNamespace(observation_space=SEEN)

    def inner(*told):
        return with_preprocessors(None, False, *told)

    space = last_space(with_previous_steps(inner, 1, 1, False, env))
    assert space.shape == (8 * 8 * 3 + 2 + 2,)
    assert space.original_space == SEEN
