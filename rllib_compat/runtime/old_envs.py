"""Functions of RLlib that made environments of the old API."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

from ray.rllib.env.multi_agent_env import MultiAgentEnv

from rllib_compat.neutral.errors import LegacyEnvError
from rllib_compat.runtime import gym_api
from rllib_compat.runtime.envs import find_creator


def make_multi_agent(env_name_or_creator: str | Callable[[Any], Any]) -> type:
    """Makes a class of environments in which several copies of one run side by side.

    Args:
        env_name_or_creator: An environment's name, or what makes one of a config.

    Returns:
        A class that takes a config with `num_agents`, 1 by default; the rest of it goes to what
        makes the environment, if that is no name. Its agents are the numbers from 0 on; its API
        is the old one.

    Raises:
        LegacyEnvError: Nobody knows the name.
    """
    creator = find_creator(env_name_or_creator)
    if creator is None:
        raise LegacyEnvError(
            f"No environment is called {env_name_or_creator!r}.",
            where="make_multi_agent(env_name_or_creator)",
            fix="give a name that gymnasium or ray.tune.register_env knows, or a function",
        )
    by_name = isinstance(env_name_or_creator, str)
    make = (lambda _: creator({})) if by_name else creator
    return type("MultiEnv", (_SideBySide,), {"make": staticmethod(make)})


class _SideBySide(MultiAgentEnv):  # type: ignore[misc]  # Ray has no types
    """One environment for each agent.

    Args:
        config: `num_agents`, and what the environment itself takes.

    Attributes:
        envs: The environments; an agent is its place among them.
        dones: The agents whose episodes have ended.
    """

    def __init__(self, config: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        own: Any = {} if config is None else copy.copy(config)  # an env context stays one
        agents = range(own.pop("num_agents", 1))
        self.envs = [self.make(own) for _ in agents]
        self.possible_agents = list(agents)
        self.agents = list(agents)
        self.dones: set[int] = set()
        self.observation_space = self.envs[0].observation_space
        self.action_space = self.envs[0].action_space

    @staticmethod
    def make(config: Any) -> Any:
        """Makes one of the environments; each class has its own."""
        raise NotImplementedError

    def reset(self) -> dict[int, Any]:
        """Starts an episode of each."""
        self.dones.clear()
        return {
            agent: gym_api.reset(self.envs[agent], None, None)[0] for agent in self.possible_agents
        }

    def step(self, action_dict: Mapping[int, Any]) -> tuple[dict[Any, Any], ...]:
        """Takes a step in each that has an action: observations, rewards, dones, infos."""
        taken = {a: gym_api.step(self.envs[a], action) for a, action in action_dict.items()}
        # Both ends of today's five values are one of the old four.
        four = {
            agent: (obs, reward, ended or cut, info)
            for agent, (obs, reward, ended, cut, info) in taken.items()
        }
        obs, rewards, dones, infos = ({a: told[i] for a, told in four.items()} for i in range(4))
        self.dones.update(agent for agent in dones if dones[agent])
        return obs, rewards, {**dones, "__all__": len(self.dones) == len(self.envs)}, infos

    def render(self, mode: str | None = None) -> Any:
        """Draws the first."""
        return self.envs[0].render() if mode is None else self.envs[0].render(mode)
