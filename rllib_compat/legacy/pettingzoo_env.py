"""Ray's wrappers of PettingZoo until Ray 2.3, for environments of any PettingZoo.

Spaces are those of one agent, as all have the same; Ray 2.40 has dicts by agent. `terminated` and
`truncated` of PettingZoo 1.22 and later are one value (`done`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ray.rllib.env.multi_agent_env import MultiAgentEnv


class _PettingZooWrapper(MultiAgentEnv):  # type: ignore[misc]  # Ray has no types
    """The base class of both wrappers.

    Raises:
        ValueError: Agents have different spaces.
    """

    def __init__(self, env: Any) -> None:
        super().__init__()
        self._inner = env
        env.reset()
        self._skip_env_checking = True
        agents = list(env.agents)
        self._agent_ids = set(agents)
        self.observation_space = self._shared_space("observation", agents)
        self.action_space = self._shared_space("action", agents)

    def _shared_space(self, what: str, agents: Iterable[Any]) -> Any:
        method = getattr(self._inner, f"{what}_space", None)
        of_agent = method if callable(method) else getattr(self._inner, f"{what}_spaces").get
        first, *others = map(of_agent, agents)
        if any(space != first for space in others):
            raise ValueError(
                f"The agents have different {what} spaces; SuperSuit's pad_{what}s makes them equal"
            )
        return first

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
        """The environment of PettingZoo."""
        return self._inner

    def reset(self) -> dict[Any, Any]:
        """Starts an episode; the first agent observes."""
        self._inner.reset()
        first = self._inner.agent_selection
        return dict.fromkeys([first], self._inner.observe(first))

    def step(self, action: dict[Any, Any]) -> Any:
        """The agent whose turn it is acts; whoever ends, and the next one, observe."""
        inner = self._inner
        inner.step(action[inner.agent_selection])
        rows: dict[Any, tuple[Any, Any, bool, Any]] = {}
        while inner.agents:
            obs, reward, *ends, info = inner.last()
            rows[inner.agent_selection] = (obs, reward, any(ends), info)
            if not any(ends):
                break
            inner.step(None)
        observations, rewards, dones, infos = (
            {agent: row[part] for agent, row in rows.items()} for part in range(4)
        )
        dones["__all__"] = not inner.agents
        return observations, rewards, dones, infos

    @property
    def get_sub_environments(self) -> Any:
        """The innermost environment."""
        return self.env.unwrapped


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

    def reset(self) -> Any:
        """Starts an episode; all agents observe."""
        found = self.par_env.reset()
        return found[0] if isinstance(found, tuple) else found

    def step(self, action_dict: dict[Any, Any]) -> Any:
        """All agents act, and observe."""
        observations, rewards, *ends, infos = self.par_env.step(action_dict)
        dones = {agent: any(end[agent] for end in ends) for agent in ends[0]}
        dones["__all__"] = all(dones.values())
        return observations, rewards, dones, infos
