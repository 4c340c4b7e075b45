"""Episodes of the old API stack tell what they told until Ray 1.x."""

from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest
from ray.rllib.evaluation.collectors.agent_collector import AgentCollector
from ray.rllib.evaluation.episode_v2 import EpisodeV2
from ray.rllib.policy.view_requirement import ViewRequirement

from rllib_compat.adapters import DefaultCallbacks, adapt_callbacks

ORIGINAL = gymnasium.spaces.Dict(
    {"a": gymnasium.spaces.Discrete(2), "b": gymnasium.spaces.Box(-9.0, 9.0, (2,), np.float32)}
)
FLAT = gymnasium.spaces.Box(-9.0, 9.0, (4,), np.float32)
FLAT.original_space = ORIGINAL


def observation(a, b):
    return gymnasium.spaces.flatten(ORIGINAL, {"a": a, "b": np.full(2, b, np.float32)})


@pytest.fixture
def episode():
    """An episode after its reset, with one agent."""
    policy = SimpleNamespace(
        observation_space=FLAT,
        action_space=gymnasium.spaces.Discrete(3),
        get_initial_state=list,
    )
    made = EpisodeV2(0, {"p": policy}, lambda agent, episode, worker: "p", worker=None)
    views = {
        "obs": ViewRequirement(space=FLAT),
        "prev_actions": ViewRequirement("actions", shift=-1, space=policy.action_space),
    }
    views["actions"] = ViewRequirement(space=policy.action_space, used_for_compute_actions=False)
    collector = AgentCollector(views)
    collector.add_init_obs(episode_id=1, agent_index=0, env_id=0, init_obs=observation(1, 0.5))
    made._agent_collectors["agent0"] = collector
    return made


def step(episode, *, action, reward, obs):
    values = {"actions": action, "rewards": reward, "terminateds": False, "truncateds": False}
    collector = episode._agent_collectors["agent0"]
    collector.add_action_reward_next_obs({**values, "new_obs": obs})


def told(episode):
    class Callbacks(DefaultCallbacks):
        def on_episode_step(self, *, worker, base_env, episode, **kwargs):
            found.append(episode)

    found = []
    adapt_callbacks(Callbacks)().on_episode_step(
        worker="worker", base_env="env", episode=episode, env_index=0
    )
    assert found == [episode], "it stays the same one, with what callbacks keep in it"
    return found[0]


def test_observations_actions_and_rewards_of_the_last_steps(episode):
    begun = told(episode)
    assert begun.last_raw_obs_for()["a"] == 1
    assert (begun.last_action_for(), begun.last_reward_for()) == (0, 0.0)
    assert begun.last_observation_for("nobody") is None
    step(episode, action=2, reward=1.5, obs=observation(0, 3.0))
    step(episode, action=1, reward=2.5, obs=observation(0, 4.0))
    assert begun.last_observation_for().tolist() == [1.0, 0.0, 4.0, 4.0]
    assert begun.last_raw_obs_for()["b"].tolist() == [4.0, 4.0]
    assert (begun.last_action_for(), begun.prev_action_for()) == (1, 2)
    assert (begun.last_reward_for(), begun.prev_reward_for()) == (2.5, 1.5)
    assert begun.last_done_for() is False
    assert begun.rnn_state_for() == []
