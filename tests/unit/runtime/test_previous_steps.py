"""What env runners put behind observations for networks that look at the steps before."""

from functools import partial
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete, MultiDiscrete
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.env.single_agent_episode import SingleAgentEpisode

from rllib_compat.runtime.connectors import add_previous_steps, with_previous_steps
from rllib_compat.runtime.previous_steps import PreviousSteps

OBS = Box(-1, 1, (2,), np.float32)


def steps(space, actions, *, taken, rewards=1):
    """The last observation after each step of an episode."""
    piece = PreviousSteps(OBS, space, actions=actions, rewards=rewards)
    episode = SingleAgentEpisode(observation_space=OBS, action_space=space)
    episode.add_env_reset(np.array([0.5, 0.5], np.float32))
    seen = []
    for number, action in enumerate([*taken, None]):
        piece(rl_module=None, batch={}, episodes=[episode])
        seen.append(episode.get_observations(-1))
        assert piece.observation_space.contains(seen[-1])
        if action is not None:
            obs = np.array([0.5, 0.5], np.float32)
            episode.add_env_step(obs, action, float(number + 1))
    return np.stack(seen)[:, 2:]


def test_the_first_step_sees_zeros_and_the_others_what_was_done():
    seen = steps(Discrete(3), 1, taken=[2, 1])
    np.testing.assert_array_equal(seen, [[0, 0], [2, 1], [1, 2]])


def test_several_actions_come_oldest_first_behind_zeros():
    seen = steps(Discrete(3), 2, taken=[2, 1], rewards=2)
    np.testing.assert_array_equal(seen, [[0, 0, 0, 0], [0, 2, 0, 1], [2, 1, 1, 2]])


@pytest.mark.parametrize(
    ("space", "action"),
    [
        (MultiDiscrete([3, 4]), np.array([2, 3])),
        (Box(-2, 2, (2,), np.float32), np.array([0.5, -1.5], np.float32)),
        (
            gymnasium.spaces.Tuple((Discrete(3), Box(-2, 2, (1,), np.float32))),
            (1, np.array([0.25], np.float32)),
        ),
    ],
    ids=["multi", "box", "tuple"],
)
def test_actions_of_any_space_are_flattened_as_they_were_taken(space, action):
    seen = steps(space, 1, taken=[action], rewards=0)
    np.testing.assert_allclose(seen[0], 0)
    np.testing.assert_allclose(seen[1], np.concatenate([np.ravel(a) for a in action]))


def test_agents_have_their_own_spaces():
    by_agent = gymnasium.spaces.Dict({"a": OBS, "b": OBS})
    actions = gymnasium.spaces.Dict({"a": Discrete(2), "b": MultiDiscrete([2, 2])})
    piece = PreviousSteps(by_agent, actions, actions=1, rewards=1, multi_agent=True)
    sizes = {k: space.shape for k, space in piece.observation_space.spaces.items()}
    assert sizes == {"a": (4,), "b": (5,)}


def test_own_connectors_stay_in_front():
    own = SimpleNamespace()
    made = with_previous_steps(lambda *_: own, 1, 0, False)
    assert made[0] is own
    assert isinstance(made[1], PreviousSteps)


def test_a_chunk_of_an_episode_remembers_as_much_as_the_network_takes():
    config = PPOConfig()
    add_previous_steps(config, 3, 1)
    assert config.episode_lookback_horizon == 3
    assert isinstance(config._env_to_module_connector, partial)
