"""A trainer that is told what came before acts as its env runner did in the midst of an episode."""

from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from rllib_compat import translate
from rllib_compat.adapters import CompatEnvRunner
from rllib_compat.algorithms import use_legacy_networks
from rllib_compat.errors import ObservationError
from rllib_compat.runtime import flatten_state
from rllib_compat.trainer.inference import Inference
from rllib_compat.trainer.running import RunningAlgorithm

# Ray 2.40 registers an environment anew for each env runner.
pytestmark = pytest.mark.filterwarnings("ignore:.*Overriding environment")

LSTM = {"use_lstm": True, "lstm_cell_size": 6, "fcnet_hiddens": [7]}
ATTENTION = {
    "use_attention": True,
    "attention_dim": 8,
    "attention_head_dim": 8,
    "attention_num_heads": 1,
    "attention_memory_inference": 4,
    "attention_position_wise_mlp_dim": 8,
}
ACTIONS, REWARDS = "attention_use_n_prev_actions", "attention_use_n_prev_rewards"
#: A model, and how many steps before it is told of.
MODELS = {
    "an LSTM": (LSTM, 1),
    "an LSTM and the step before": (
        {**LSTM, "lstm_use_prev_action": True, "lstm_use_prev_reward": True},
        1,
    ),
    "attention": (ATTENTION, 1),
    "attention and two steps before": ({**ATTENTION, ACTIONS: 2, REWARDS: 2}, 2),
    "attention and two actions, three rewards": ({**ATTENTION, ACTIONS: 2, REWARDS: 3}, 3),
    "attention and three actions": ({**ATTENTION, ACTIONS: 3}, 3),
    "attention and three rewards": ({**ATTENTION, REWARDS: 3}, 3),
}
LENGTH = 7


def acting(runner):
    """What acts of a trainer, around an env runner."""
    group = SimpleNamespace(local_env_runner=runner)
    return Inference(
        RunningAlgorithm(SimpleNamespace(config=runner.config, env_runner_group=group))
    )


def env_runner(model, env="CartPole-v1"):
    old = {"env": env, "num_workers": 0, "seed": 3}
    config = translate(old, algorithm="PPO").algorithm_config
    use_legacy_networks(config, {**old, "model": model}, algorithm="PPO")
    return CompatEnvRunner(config=config)


@pytest.mark.parametrize("env", ["CartPole-v1", "MountainCarContinuous-v0"])
@pytest.mark.parametrize("name", MODELS)
def test_it_acts_as_in_the_midst_of_an_episode(name, env):
    model, steps = MODELS[name]
    runner = env_runner(model, env)
    (episode,) = runner.sample(num_timesteps=LENGTH, random_actions=False)
    states = flatten_state(episode.get_extra_model_outputs("state_out"))
    inputs = episode.get_extra_model_outputs("action_dist_inputs")
    size = runner.env.single_observation_space.shape[0]
    for now in range(steps, len(inputs)):
        seen = [
            slice(now - model[key], now) if key in model else now - 1 for key in (ACTIONS, REWARDS)
        ]
        action, state, extras = acting(runner).compute_single_action(
            # The vector behind it is what came before.
            episode.get_observations(now)[:size],
            [state[now - 1] for state in states],
            np.asarray(episode.get_actions(seen[0])),
            # Where it sees no rewards but actions, it is asked without, as old code asked.
            None if ACTIONS in model and REWARDS not in model else episode.get_rewards(seen[1]),
            timestep=0,
            full_fetch=True,
        )
        np.testing.assert_allclose(extras["action_dist_inputs"], inputs[now], rtol=1e-6)
        for computed, sampled in zip(state, states, strict=True):
            # Of attention, what it has put behind its memory.
            expected = sampled[now][-1] if "use_attention" in model else sampled[now]
            np.testing.assert_allclose(computed, expected, rtol=1e-6)
        assert np.shape(action) == runner.env.single_action_space.shape


class Parts(gymnasium.Env):
    """What is seen has parts of each kind."""

    observation_space = spaces.Dict(
        {
            "numbers": spaces.Box(-1, 1, (2,)),
            "bits": spaces.MultiBinary(3),
            "pair": spaces.Tuple([spaces.Discrete(3), spaces.MultiDiscrete([3, 2])]),
        }
    )
    action_space = spaces.Discrete(5)

    def __init__(self, config=None):
        pass

    def reset(self, *, seed=None, options=None):
        return self.observation_space.sample(), {}


SEEN = {"numbers": [0, 0.5], "bits": [0, 1, 1], "pair": [2, [2, 1]]}


@pytest.fixture(scope="module")
def of_parts():
    return acting(env_runner({"fcnet_hiddens": [8]}, Parts))


def test_lists_are_taken_for_the_arrays_and_tuples_of_a_space(of_parts):
    arrays = {"numbers": np.array([0, 0.5]), "bits": np.array([0, 1, 1], np.int8)}
    whole = {**arrays, "pair": (2, np.array([2, 1]))}
    found = [
        of_parts.compute_single_action(seen, explore=False, timestep=0, full_fetch=True)[2]
        for seen in (SEEN, whole, {**SEEN, "numbers": [[0, 0.5]]}, {**SEEN, "pair": [[2], [2, 1]]})
    ]
    for extras in found[1:]:
        np.testing.assert_array_equal(extras["action_dist_inputs"], found[0]["action_dist_inputs"])


@pytest.mark.parametrize(
    "other",
    [
        {"more": 1},
        {"numbers": ["0", "1"]},
        {"numbers": [np.nan, 0]},
        {"numbers": [np.inf, 0]},
        {"bits": [0, 1]},
        {"pair": (2, [2, 1], 0)},
    ],
)
def test_what_is_not_of_the_space_is_an_error_and_not_cut_to_it(of_parts, other):
    with pytest.raises(ObservationError, match="is not of the space"):
        of_parts.compute_single_action({**SEEN, **other}, explore=False)
