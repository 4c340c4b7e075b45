"""Recorded steps that are not those of a policy are refused by name."""

import gymnasium as gym
import numpy as np
import pytest

from rllib_compat.errors import ConfigError
from rllib_compat.runtime import require_fit

BOX, CHOICE = gym.spaces.Box(-1, 1, (2,)), gym.spaces.Discrete(3)
BOTH = gym.spaces.Tuple([BOX, CHOICE])
SEEN = np.zeros((4, 2))

FIT = {
    "vectors": (SEEN, BOX, [0, 1, 2, 0], CHOICE),
    "numbers": (SEEN, BOX, SEEN, BOX),
    "parts in one vector": (SEEN, BOX, np.zeros((4, 3)), BOTH),
    "a number that is a vector of one": (np.zeros(4), CHOICE, [[0], [1], [2], [0]], CHOICE),
    "images": (np.zeros((4, 8, 8, 3)), gym.spaces.Box(0, 255, (8, 8, 3)), [0, 1, 2, 0], CHOICE),
    "parts apart": ([{"a": 1}] * 4, BOTH, [([0.0, 1.0], 2)] * 4, BOTH),
}
OTHERS = {
    "observations": (
        np.zeros((4, 5)),
        BOX,
        [0, 1, 2, 0],
        CHOICE,
        "An observation of the recording has 5 numbers, one of the policy 2",
    ),
    "actions": (
        SEEN,
        BOX,
        np.zeros((4, 4)),
        BOTH,
        "An action of the recording has 4 numbers, one of the policy 3",
    ),
    "choices": (SEEN, BOX, [0, 1, 3, 0], CHOICE, "actions from 0 to 3"),
}


@pytest.mark.parametrize(("obs", "seen", "actions", "acts"), FIT.values(), ids=FIT)
def test_recorded_steps_of_a_policy_fit(obs, seen, actions, acts):
    require_fit({"obs": obs, "actions": actions}, seen, acts, "file")


@pytest.mark.parametrize(("obs", "seen", "actions", "acts", "said"), OTHERS.values(), ids=OTHERS)
def test_recorded_steps_of_another_are_refused(obs, seen, actions, acts, said):
    with pytest.raises(ConfigError, match=said) as refused:
        require_fit({"obs": obs, "actions": actions}, seen, acts, "file")
    assert refused.value.where == "file"
    assert refused.value.fix
