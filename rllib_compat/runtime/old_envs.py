"""Functions of RLlib that made environments of the old API."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ray.rllib.env.multi_agent_env import MultiAgentEnv

from rllib_compat.runtime import gym_api
from rllib_compat.runtime.envs import find_creator


def make_multi_agent(env_name_or_creator: str | Callable[[Any], Any]) -> type:
    """Makes a class of environments in which several copies of one run side by side.

    Args:
        env_name_or_creator: An environment's name, or what makes one of a config.

    Returns:
        A class that takes a config with `num_agents` and whatever the environment itself takes. Its
        agents are the numbers from 0 on; its API is the old one.
    """
    creator = find_creator(env_name_or_creator)
    if creator is None:
        raise ValueError(f"No environment is called {env_name_or_creator!r}.")
    make = creator

    class MultiEnv(MultiAgentEnv):  # type: ignore[misc]  # Ray has no types
        def __init__(self, config: Mapping[str, Any] | None = None) -> None:
            super().__init__()
            given = dict(config or {})
            count = given.pop("num_agents", 1)
            of_name = isinstance(env_name_or_creator, str)
            self.envs = [make({} if of_name else given) for _ in range(count)]
            self.agents = self.possible_agents = list(range(count))
            self.dones: set[int] = set()
            self.observation_space = self.envs[0].observation_space
            self.action_space = self.envs[0].action_space

        def reset(self) -> dict[int, Any]:
            self.dones = set()
            return {i: gym_api.reset(env, None, None)[0] for i, env in enumerate(self.envs)}

        def step(self, action_dict: Mapping[int, Any]) -> Any:
            obs, rewards, infos = {}, {}, {}
            dones: dict[Any, bool] = {}
            for i, action in action_dict.items():
                obs[i], rewards[i], ended, cut, infos[i] = gym_api.step(self.envs[i], action)
                dones[i] = ended or cut
                if dones[i]:
                    self.dones.add(i)
            all_done = len(self.dones) == len(self.envs)
            dones["__all__"] = all_done
            return obs, rewards, dones, infos

        def render(self, mode: str | None = None) -> Any:
            return self.envs[0].render() if mode is None else self.envs[0].render(mode)

    return MultiEnv
