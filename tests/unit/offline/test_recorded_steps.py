"""Recorded steps that are not those of a policy are refused by name."""

from contextlib import nullcontext

import gymnasium as gym
import numpy as np
import pytest
from ray.rllib.env.single_agent_episode import SingleAgentEpisode

from rllib_compat.errors import ConfigError
from rllib_compat.ray_versions import episodes
from rllib_compat.runtime import Extremes, require_fit

BOX, CHOICE = gym.spaces.Box(-1, 1, (2,)), gym.spaces.Discrete(3)
BOTH, SEVERAL = gym.spaces.Tuple([BOX, CHOICE]), gym.spaces.MultiDiscrete([3, 2])
SEEN = np.zeros((4, 2))

FIT = {
    "vectors": (SEEN, BOX, [0, 1, 2, 0], CHOICE),
    "numbers": (SEEN, BOX, SEEN, BOX),
    "several choices": (SEEN, BOX, [[0, 1], [2, 0]], SEVERAL),
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
    "several choices": (
        SEEN,
        BOX,
        [[0, 1], [2, -1]],
        SEVERAL,
        "from -1 to 1, and",
    ),
    "a choice in one vector": (SEEN, BOX, [[0, 0, 3]], BOTH, "actions from 3 to 3"),
    "a half": (SEEN, BOX, [0, 1.5, 2, 0], CHOICE, "actions from 0 to 2"),
    "no observation": (SEEN + np.nan, BOX, [0] * 4, CHOICE, "observations that are NaN"),
    "text": (SEEN, BOX, ["0", "1"], CHOICE, "actions that are text"),
    "no number": (SEEN, BOX, [[0, np.nan]], BOX, "actions from nan to nan"),
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


def recorded(shape, actions):
    episode = SingleAgentEpisode(
        observations=[np.zeros(shape)] * (len(actions) + 1),
        actions=actions,
        rewards=[0.0] * len(actions),
        len_lookback_buffer=0,
    )
    return episodes.to_numpy(episode)


@pytest.mark.parametrize(
    ("shape", "actions", "said"),
    [
        ((2,), [0, 3], "from 0 to 3"),
        ((2,), [0, 1.5, 2], "from 0 to 2"),
        ((5,), [0], "has 5 numbers"),
        ((2,), [0, 1, 2], None),
    ],
)
def test_the_extremes_of_all_episodes_are_refused_for_one_of_them(shape, actions, said):
    extremes = Extremes()
    for episode in (recorded((2,), [0, 1]), recorded(shape, actions), recorded((2,), [1])):
        extremes.add(episode)
    with pytest.raises(ConfigError, match=said) if said else nullcontext():
        for columns in extremes:
            require_fit(columns, BOX, CHOICE, "file")
