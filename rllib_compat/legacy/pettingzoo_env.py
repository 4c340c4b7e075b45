"""Ray's wrappers of PettingZoo until Ray 2.3, for environments of any PettingZoo.

Spaces are those of one agent, as all have the same; Ray 2.40 has dicts by agent. `terminated` and
`truncated` of PettingZoo 1.22 and later are one value (`done`).
"""

from __future__ import annotations

import inspect
from typing import Any

from ray.rllib.env.multi_agent_env import MultiAgentEnv


class _PettingZooWrapper(MultiAgentEnv):  # type: ignore[misc]  # Ray has no types
    """The base class of both wrappers.

    Raises:
        ValueError: Agents have different spaces.
    """

    is_old_api = True
    _skip_env_checking = True

    def __init__(self, env: Any) -> None:
        self._inner = env
        env.reset()
        self.agents = list(getattr(env, "possible_agents", None) or env.agents)
        self.possible_agents = list(self.agents)
        self._agent_ids = set(self.agents)
        self.observation_spaces = self._spaces("observation")
        self.action_spaces = self._spaces("action")
        first = self.agents[0]
        self.observation_space, self.action_space = (
            spaces[first] for spaces in (self.observation_spaces, self.action_spaces)
        )
        super().__init__()

    def _spaces(self, what: str) -> dict[Any, Any]:
        method = getattr(self._inner, f"{what}_space", None)
        of_agent = method if callable(method) else getattr(self._inner, f"{what}_spaces").get
        found = {agent: of_agent(agent) for agent in self.agents}
        if any(space != found[self.agents[0]] for space in found.values()):
            raise ValueError(
                f"The agents have different {what} spaces; SuperSuit's pad_{what}s makes them equal"
            )
        return found

    def _reset(self, seed: int | None) -> Any:
        """Starts an episode; with a seed as the environment takes it."""
        if seed is not None and "seed" in inspect.signature(self._inner.reset).parameters:
            return self._inner.reset(seed=seed)
        if seed is not None:
            self.seed(seed)
        return self._inner.reset()

    def close(self) -> None:
        """Closes the environment."""
        self._inner.close()

    def seed(self, seed: int | None = None) -> None:
        """Seeds the environment, if it has a method for that."""
        getattr(self._inner, "seed", lambda _: None)(seed)

    def render(self, mode: str = "human") -> Any:
        """Draws the environment; since PettingZoo 1.22 in the mode that it was made with."""
        try:
            return self._inner.render(mode)
        except TypeError:
            return self._inner.render()


class PettingZooEnv(_PettingZooWrapper):
    """Agents act in turn: the one that observes acts next."""

    @property
    def env(self) -> Any:
        """The environment of PettingZoo, which Ray 1.0 called `aec_env`."""
        return self._inner

    aec_env = env

    def reset(self, *, seed: int | None = None, options: object = None) -> dict[Any, Any]:
        """Starts an episode; the first agent observes."""
        self._reset(seed)
        first = self._inner.agent_selection
        return {first: self._inner.observe(first)}

    def step(self, action: dict[Any, Any]) -> Any:
        """The agent whose turn it is acts; whoever ends, and the next one, observe."""
        inner = self._inner
        inner.step(action[inner.agent_selection])
        rows: dict[Any, tuple[Any, Any, bool, Any]] = {}
        # Until PettingZoo 1.4, agents that have ended stay in `agents`.
        while inner.agents and inner.agent_selection not in rows:
            agent = inner.agent_selection
            *seen, reward, done, info = _last(inner)
            rows[agent] = (seen[0] if seen else inner.observe(agent), reward, done, info)
            if not done:
                break
            inner.step(None)
        observations, rewards, dones, infos = (
            {agent: row[part] for agent, row in rows.items()} for part in range(4)
        )
        dones["__all__"] = all(dones.get(agent, False) for agent in inner.agents)
        return observations, rewards, dones, infos

    @property
    def get_sub_environments(self) -> Any:
        """The innermost environment."""
        return self.env.unwrapped


def _last(env: Any) -> tuple[Any, ...]:
    """What `last()` gives: the observation (since PettingZoo 1.4), reward, done, info."""
    *start, info = env.last()
    if len(start) == 4:  # PettingZoo 1.22: terminated, truncated
        start[2:] = [start[2] or start[3]]
    return (*start, info)


class ParallelPettingZooEnv(_PettingZooWrapper):
    """All agents act at once."""

    @property
    def par_env(self) -> Any:
        """The environment of PettingZoo."""
        return self._inner

    @property
    def unwrapped(self) -> Any:
        """The innermost environment."""
        return self.par_env.unwrapped

    def reset(self, *, seed: int | None = None, options: object = None) -> Any:
        """Starts an episode; all agents observe."""
        found = self._reset(seed)
        return found[0] if isinstance(found, tuple) else found

    def step(self, action_dict: dict[Any, Any]) -> Any:
        """All agents act, and observe."""
        observations, rewards, *ends, infos = self.par_env.step(action_dict)
        dones = {agent: any(end[agent] for end in ends) for agent in ends[0]}
        dones["__all__"] = all(dones.values())
        return observations, rewards, dones, infos
