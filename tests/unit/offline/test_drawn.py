"""Episodes that are drawn from recordings are told apart, and actions have their parts again."""

from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest
import tree
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete, Tuple
from ray.rllib.env.single_agent_episode import SingleAgentEpisode

from rllib_compat.adapters import PreLearner
from rllib_compat.config import translate
from rllib_compat.runtime.offline.drawn import DrawnEpisodes, split_actions
from tests.unit.offline.test_recordings import played

SPACES = [
    Dict({"b": Box(-1, 1, (2, 2)), "a": Discrete(3)}),
    Tuple([Discrete(2), Dict({"z": MultiDiscrete([2, 4]), "y": Box(-1, 1, ())})]),
]


def recorded(action):
    return np.concatenate([np.ravel(part) for part in tree.flatten(action)]).astype(np.float32)


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_an_action_of_several_parts_comes_back_from_one_vector(space):
    space.seed(1)
    actions = [space.sample() for _ in range(5)]
    apart = split_actions(np.stack([recorded(action) for action in actions]), space)
    for at, action in enumerate(actions):
        found = tree.map_structure(lambda column, at=at: column[at], apart)
        tree.map_structure(
            np.testing.assert_allclose, tuple(tree.flatten(found)), tuple(tree.flatten(action))
        )
        assert [part.dtype for part in tree.flatten(found)] == [
            np.asarray(part).dtype for part in tree.flatten(action)
        ]


@pytest.mark.parametrize("space", [*SPACES, Discrete(2)], ids=str)
def test_an_episode_that_is_drawn_twice_is_two(space):
    episode = played(3, end="terminated")
    parts = not isinstance(space, gymnasium.spaces.Discrete)
    if parts:
        episode.actions.data = np.stack([recorded(space.sample()) for _ in range(3)])
    drawn = [episode, episode]
    module = SimpleNamespace(action_space=space, is_stateful=lambda: False)
    DrawnEpisodes()(rl_module={"p": module}, batch={}, episodes=drawn, metrics=None)
    assert len({one.id_ for one in drawn}) == 2
    assert episode.id_ == "a"
    assert isinstance(episode.actions.data, np.ndarray)
    for one in drawn:
        assert len(one) == 3
        assert one.get_rewards().tolist() == [0, 1, 2]
        assert tree.is_nested(one.get_actions(0)) == parts


def test_an_lstm_has_a_list_of_states_where_an_episode_has_lists():
    episode = SingleAgentEpisode(
        observations=[0.0] * 8, actions=[0] * 7, rewards=[1.0] * 7, len_lookback_buffer=0
    )
    module = SimpleNamespace(
        action_space=Discrete(2),
        is_stateful=lambda: True,
        get_initial_state=lambda: {"h": np.full(4, 0.5, np.float32)},
    )
    drawn = [episode]
    DrawnEpisodes()(rl_module={"p": module}, batch={}, episodes=drawn, metrics=None)
    states = drawn[0].extra_model_outputs["state_out"]
    assert isinstance(states.data, list)
    assert len(states) == len(drawn[0]) == 7


@pytest.mark.parametrize("begins", [0, 4], ids=["an episode", "a part of one"])
def test_an_lstm_begins_with_its_first_state_wherever_a_recorded_episode_was_cut(begins):
    """Ray 2.40 looked for states in the recording: an IndexError, or two structures."""
    episode = played(7, end="terminated")
    episode.t_started, episode.t = begins, begins + 7
    module = SimpleNamespace(
        action_space=Discrete(2),
        model_config={"max_seq_len": 3},
        is_stateful=lambda: True,
        get_initial_state=lambda: {"h": np.full(4, 0.5, np.float32)},
    )
    drawn, modules = [episode], {"default_policy": module}
    DrawnEpisodes()(rl_module=modules, batch={}, episodes=drawn, metrics=None)
    own = drawn[0].get_extra_model_outputs
    assert own("state_out")["h"].shape == (7, 4)
    before = own("state_out", -1, neg_index_as_lookback=True)
    assert before["h"].tolist() == [0.5] * 4
    assert "state_out" not in episode.extra_model_outputs


@pytest.mark.parametrize(("name", "is_ours"), [("BC", True), ("CRR", True), ("PPO", False)])
def test_what_learns_from_recordings_takes_them_so(name, is_ours):
    config = translate({"env": "CartPole-v1"}, algorithm=name).algorithm_config
    assert (config.prelearner_class is PreLearner) == is_ours
