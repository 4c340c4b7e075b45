"""The spaces of agents that come late, or that a callback gives another game, in connectors.

Today's connectors ask once, when they are made, what the agents' spaces are. Environments of old
could bring new agents at any time. So the connectors' tables of spaces become views on those of the
environment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rllib_compat.ray_versions import connectors, environments
from rllib_compat.runtime.multi_agent import MultiAgentAdapter


class LiveStructs(Mapping[Any, Any]):
    """The spaces of an environment's agents as connectors want them: without the outer classes.

    Args:
        env: The environment.
        name: "action_spaces" or "observation_spaces".
    """

    def __init__(self, env: MultiAgentAdapter, name: str) -> None:
        self._env = env
        self._name = name
        self._made: dict[Any, tuple[Any, Any]] = {}

    def __getitem__(self, agent: Any) -> Any:
        from ray.rllib.utils.spaces.space_utils import get_base_struct_from_space

        space = getattr(self._env, self._name)[agent]
        known, struct = self._made.get(agent, (None, None))
        if known is not space:
            struct = get_base_struct_from_space(space)
            self._made[agent] = (space, struct)
        return struct

    def __iter__(self) -> Iterator[Any]:
        return iter(getattr(self._env, self._name))

    def __len__(self) -> int:
        return len(getattr(self._env, self._name))


def follow_agents(env_runner: Any) -> None:
    """Makes a runner's connectors look at the spaces that its environment has now."""
    env = env_runner.env
    envs = [e.unwrapped for e in environments.sub_environments(getattr(env, "unwrapped", env))]
    adapter = next((e for e in envs if isinstance(e, MultiAgentAdapter)), None)
    if adapter is None:
        return
    tables = {kind: LiveStructs(adapter, f"{kind}_spaces") for kind in ("action", "observation")}
    connectors.look_spaces_up_in(env_runner, tables, adapter.observation_spaces)
