"""Agents that come late, in a real env runner."""

import pytest
from gymnasium import spaces
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.env.multi_agent_env import MultiAgentEnv
from ray.rllib.env.multi_agent_env_runner import MultiAgentEnvRunner
from ray.rllib.policy.policy import PolicySpec

from rllib_compat.adapters import EnvSettings, adapt_callbacks, adapt_env, make_env
from rllib_compat.errors import LegacyEnvError
from rllib_compat.runtime import add_preprocessors

# Ray 2.40 registers its own environment each time.
pytestmark = pytest.mark.filterwarnings("ignore:.*Overriding environment")

HIGH = spaces.Tuple([spaces.Box(0, 100, (2,)), spaces.Discrete(4)])
LOW = spaces.Tuple([HIGH, spaces.Discrete(3)])
ACT = spaces.Discrete(3)


class Hierarchical(MultiAgentEnv):
    """`high` sets a goal, then an agent that nobody has seen before plays one step for it."""

    def __init__(self, config=None):
        self.rounds = 0

    def reset(self):
        self.rounds = 0
        return {"high": [[0, 1], 2]}

    def step(self, actions):
        if "high" in actions:
            self.rounds += 1
            name = f"low_{self.rounds}"
            return {name: [[[0, 1], 2], actions["high"]]}, {name: 0.0}, {"__all__": False}, {}
        (name,) = actions
        done = {name: True, "__all__": self.rounds == 3}
        return {name: [[[1, 1], 2], 0], "high": [[1, 1], 2]}, {name: 1.0, "high": 1.0}, done, {}


def test_structured_observations_of_agents_that_come_late_reach_their_policies():
    def mapping(agent, *_, **__):
        return agent.split("_")[0]

    policies = {"high": (HIGH, ACT), "low": (LOW, ACT)}
    settings = EnvSettings(
        Hierarchical, multi_agent=True, policy_spaces=policies, policy_mapping_fn=mapping
    )
    config = (
        PPOConfig()
        .environment(adapt_env(settings))
        .multi_agent(
            policies={
                name: PolicySpec(observation_space=obs, action_space=act)
                for name, (obs, act) in policies.items()
            },
            policy_mapping_fn=mapping,
        )
        .callbacks(adapt_callbacks(None))
    )
    add_preprocessors(config)
    runner = MultiAgentEnvRunner(config=config)
    episode = runner.sample(num_episodes=1)[0]
    shapes = {a: e.get_observations(0).shape for a, e in episode.agent_episodes.items()}
    assert shapes == {"high": (6,), "low_1": (9,), "low_2": (9,), "low_3": (9,)}


def test_a_policy_that_is_not_here_is_named_and_not_the_space_that_it_would_have_told():
    class Team:
        def reset(self):
            return {"us": 0, "them": 0}

        def step(self, actions):
            raise NotImplementedError

    settings = EnvSettings(
        lambda _: Team(),
        multi_agent=True,
        policy_mapping_fn=lambda agent, *_, **__: "learned" if agent == "us" else "heuristic",
        policy_spaces={"learned": (ACT, ACT)},
    )
    with pytest.raises(
        LegacyEnvError, match=r"agent 'them' the policy 'heuristic', which is not one of 'learned'"
    ):
        make_env(settings, {}).reset()
