"""What env runners put behind observations for networks that look at the steps before."""

from functools import partial
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete, MultiDiscrete
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.env.single_agent_episode import SingleAgentEpisode

from rllib_compat.adapters import PreviousSteps, with_previous_steps
from rllib_compat.config import translate
from rllib_compat.errors import ConfigError
from rllib_compat.ray_versions import configs
from rllib_compat.runtime import add_preprocessors, set_previous_steps

OBS = Box(-1, 1, (2,), np.float32)


def steps(space, actions, *, taken, rewards=1, **more):
    """The last observation after each step of an episode."""
    piece = PreviousSteps(OBS, space, actions=actions, rewards=rewards, **more)
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


def test_new_networks_see_choices_one_hot_the_first_before_the_first_step():
    seen = steps(Discrete(3), 2, taken=[2, 1], one_hot=True)
    first, second, third = np.eye(3)
    expected = [[*first, *first, 0], [*first, *third, 1], [*third, *second, 2]]
    np.testing.assert_array_equal(seen, expected)
    space = gymnasium.spaces.Tuple((Discrete(2), Box(-2, 2, (1,), np.float32)))
    seen = steps(space, 1, taken=[(1, np.array([0.25], np.float32))], rewards=0, one_hot=True)
    np.testing.assert_array_equal(seen, [[1, 0, 0], [0, 1, 0.25]])


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
    set_previous_steps(config, 3, 1)
    assert config.episode_lookback_horizon == 3
    assert isinstance(config._env_to_module_connector, partial)


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("algorithm", "config"),
    [
        ("PPO", {"model": {"use_lstm": True, "lstm_use_prev_action_reward": True}}),
        ("R2D2", {"model": {"use_lstm": True, "lstm_use_prev_action_reward": True}}),
        (
            "RNNSAC",
            {
                name: {"lstm_use_prev_action": True, "lstm_use_prev_reward": True}
                for name in ("policy_model", "Q_model")
            },
        ),
    ],
)
def test_new_recurrent_networks_see_the_step_before_where_an_old_config_says_so(algorithm, config):
    """Ray has settings of these names, and no release from 2.40 to 2.60 looks at them."""
    built = translate({"env": "CartPole-v1", **config}, algorithm=algorithm).algorithm_config
    built.environment("CartPole-v1")
    pipeline = built.build_env_to_module_connector(gymnasium.make("CartPole-v1"))
    seen = [piece for piece in pipeline if isinstance(piece, PreviousSteps)]
    assert [piece.observation_space.shape for piece in seen] == [(4 + 2 + 1,)]
    told = built.model_config
    assert told["lstm_use_prev_action"] is told["lstm_use_prev_reward"] is True


@pytest.mark.parametrize("kind", ["R2D2", "A2C"])
def test_an_observation_is_not_taken_for_the_step_before_where_no_connector_puts_one_there(kind):
    model = {"use_lstm": True, "max_seq_len": 5, "lstm_use_prev_action": True}
    config = configs.todays_config(kind).environment("CartPole-v1").rl_module(model_config=model)
    env = gymnasium.make("CartPole-v1")
    with pytest.raises(ConfigError, match="lstm_use_prev_action"):
        config.build_env_to_module_connector(env)
    set_previous_steps(config, 1, 0, one_hot=True)
    assert config.build_env_to_module_connector(env).observation_space.shape == (4 + 2,)


def test_what_a_checkpoint_says_of_steps_before_stands_alone():
    config = {"env": "CartPole-v1", "model": {"use_lstm": True, "lstm_use_prev_action": True}}
    built = translate(config, algorithm="PPO").algorithm_config
    set_previous_steps(built, 2, 0)
    made = built._env_to_module_connector(gymnasium.make("CartPole-v1"))
    assert [piece._actions for piece in made] == [2]


@pytest.mark.parametrize("observation_filter", ["NoFilter", "MeanStdFilter"])
def test_a_network_that_never_saw_the_step_before_does_not_see_it_though_its_config_asks(
    observation_filter,
):
    """Up to Ray 0.8.5, `use_lstm` could be without effect: the museum's `ppo-tf-lstm-prevar`."""
    config = {
        "env": "CartPole-v1",
        "model": {"use_lstm": True, "lstm_use_prev_action_reward": True},
        "observation_filter": observation_filter,
    }
    built = translate(config, algorithm="PPO").algorithm_config
    add_preprocessors(built)
    set_previous_steps(built, 0, 0)
    made = built._env_to_module_connector(gymnasium.make("CartPole-v1"))
    told = built.model_config
    assert told["lstm_use_prev_action"] is told["lstm_use_prev_reward"] is False
    names = [type(piece).__name__ for piece in made]
    assert names == ([observation_filter] if observation_filter != "NoFilter" else [])


def test_a_config_that_asks_for_no_step_before_keeps_its_connectors():
    config = PPOConfig().env_runners(env_to_module_connector=lambda *_: SimpleNamespace())
    before = config._env_to_module_connector
    set_previous_steps(config, 0, 0)
    assert config._env_to_module_connector is before
