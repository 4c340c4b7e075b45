"""The `BaseEnv` of Ray 0.5 – 2.x: all environments of one runner, by number and by agent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from rllib_compat.registry.legacy_api import GONE, missing, names_with
from rllib_compat.runtime.policy_mapping import ONLY_AGENT
from rllib_compat.runtime.user_envs import list_environments, user_env

#: Values by the number of an environment and by agent.
Values = dict[int, dict[Any, Any]]


class _Step(NamedTuple):
    """What one environment has said, each by agent."""

    observations: dict[Any, Any]
    rewards: dict[Any, float]
    dones: dict[Any, bool]
    infos: dict[Any, Any]


class LegacyBaseEnv:
    """All environments of one runner.

    Args:
        env: gymnasium's vector environment, or Ray's multi-agent one.
        stepped: Called when user code resets or steps an environment itself, past the runner.
    """

    def __init__(self, env: Any, stepped: Callable[[], None] = lambda: None) -> None:
        self._env = env
        self._stepped = stepped
        self._news: dict[int, _Step] = {}

    @property
    def envs(self) -> list[Any]:
        """The user's own environments."""
        return self.get_unwrapped()

    @property
    def num_envs(self) -> int:
        """How many there are."""
        return len(self.get_sub_environments())

    def get_sub_environments(self, as_dict: bool = False) -> Any:
        """The user's own environments, without any wrapper of this package."""
        envs = [user_env(env) for env in self.wrapped_environments()]
        return dict(enumerate(envs)) if as_dict else envs

    def wrapped_environments(self) -> list[Any]:
        """The environments in all their wrappers."""
        return list_environments(self._env)

    def get_unwrapped(self) -> list[Any]:
        """The older name of `get_sub_environments`."""
        return list(self.get_sub_environments())

    @property
    def vector_env(self) -> Any:
        """The environments as today's runner steps them."""
        return self._env

    def to_base_env(self, *_: object, **__: object) -> LegacyBaseEnv:
        """Itself."""
        return self

    # Spaces

    @property
    def observation_space(self) -> Any:
        """What one environment observes."""
        return getattr(self._env, "single_observation_space", None) or self._env.observation_space

    @property
    def action_space(self) -> Any:
        """What is done in one environment."""
        return getattr(self._env, "single_action_space", None) or self._env.action_space

    def get_agent_ids(self) -> set[Any]:
        """The ids of all agents; the only one is `agent0`."""
        return set(_agents(next(iter(self.wrapped_environments()), None)) or [ONLY_AGENT])

    def observation_space_sample(self, agent_id: Iterable[Any] | None = None) -> Values:
        """An observation of the space for each agent of each environment."""
        return self._samples(self.observation_space, agent_id)

    def action_space_sample(self, agent_id: Iterable[Any] | None = None) -> Values:
        """An action of the space for each agent of each environment."""
        return self._samples(self.action_space, agent_id)

    def observation_space_contains(self, x: Values) -> bool:
        """Whether all observations are of the space."""
        return _all_in(self.observation_space, x)

    def action_space_contains(self, x: Values) -> bool:
        """Whether all actions are of the space."""
        return _all_in(self.action_space, x)

    def _samples(self, space: Any, agents: Iterable[Any] | None) -> Values:
        ids = self.get_agent_ids() if agents is None else set(agents)
        return {n: {a: _of_agent(space, a).sample() for a in ids} for n in range(self.num_envs)}

    # Steps, past the runner

    def try_reset(self, env_id: int | None = None, **how: Any) -> Values:
        """Begins an episode in an environment; None: in all. The runner begins new ones, too.

        Args:
            env_id: The number of the environment.
            **how: `seed` and `options`.

        Returns:
            The first observations.
        """
        self._stepped()
        envs = self.wrapped_environments()
        numbers = range(len(envs)) if env_id is None else [env_id]
        return {n: _by_agent(envs[n], envs[n].reset(**how)[0]) for n in numbers}

    def send_actions(self, action_dict: Values) -> None:
        """Steps environments by the actions of their agents; `poll` gives what came of it."""
        self._stepped()
        envs = self.wrapped_environments()
        for number, actions in action_dict.items():
            env = envs[number]
            told = env.step(dict(actions) if _agents(env) else actions[ONLY_AGENT])
            observations, rewards, ended, cut, infos = (_by_agent(env, part) for part in told)
            dones = {agent: bool(ended[agent] or cut.get(agent)) for agent in ended}
            dones.setdefault("__all__", all(dones.values()))
            self._news[number] = _Step(observations, rewards, dones, infos)

    def poll(self) -> tuple[Values, ...]:
        """What environments have said since the last call; at first, they are reset.

        Returns:
            Observations, rewards, dones and infos, and the actions that environments have chosen
            by themselves: none.
        """
        news, self._news = self._news, {}
        if not news:
            for number, first in self.try_reset().items():
                dones = dict.fromkeys([*first, "__all__"], False)
                infos: dict[Any, Any] = {agent: {} for agent in first}
                news[number] = _Step(first, dict.fromkeys(first, 0.0), dones, infos)
        parts = ({n: step[part] for n, step in news.items()} for part in range(4))
        return (*parts, {})

    last = poll

    @property
    def new_obs(self) -> list[Any]:
        """The observations that `poll` has not given yet, as the three that follow."""
        return [step.observations for step in self._news.values()]

    @property
    def cur_rewards(self) -> list[Any]:
        """Rewards."""
        return [step.rewards for step in self._news.values()]

    @property
    def cur_dones(self) -> list[Any]:
        """Whether episodes are over."""
        return [step.dones for step in self._news.values()]

    @property
    def cur_infos(self) -> list[Any]:
        """Infos."""
        return [step.infos for step in self._news.values()]

    def try_render(self, env_id: int | None = None) -> Any:
        """Renders an environment; None: the first."""
        return self.wrapped_environments()[env_id or 0].render()

    def stop(self) -> None:
        """Closes all environments."""
        self._env.close()

    def __dir__(self) -> list[str]:
        return names_with(self, "base_env", self._env)

    def __getattr__(self, name: str) -> Any:
        if name in GONE["base_env"] or name.startswith("_"):
            raise missing(self, "base_env", name)
        return getattr(self._env, name)


class OldStackBaseEnv:
    """All environments of one worker of the old API stack, where `BaseEnv` has lost older names.

    Args:
        env: Ray's `BaseEnv`, which answers what is not told here.
    """

    def __init__(self, env: Any) -> None:
        self._env = env

    def get_sub_environments(self, as_dict: bool = False) -> Any:
        """The user's own environments, without any wrapper of this package."""
        envs = [user_env(env) for env in self._env.get_sub_environments()]
        return dict(enumerate(envs)) if as_dict else envs

    def get_unwrapped(self) -> list[Any]:
        """The older name of `get_sub_environments`."""
        return list(self.get_sub_environments())

    envs = property(get_unwrapped)

    @property
    def num_envs(self) -> int:
        """How many there are."""
        return len(self.get_unwrapped())

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._env, name)


def _agents(env: Any) -> list[Any]:
    """The ids of the agents of an environment that knows several."""
    return list(getattr(getattr(env, "unwrapped", None), "possible_agents", None) or [])


def _by_agent(env: Any, told: Any) -> dict[Any, Any]:
    """What an environment has said, by agent."""
    return dict(told) if _agents(env) else {ONLY_AGENT: told}


def _of_agent(space: Any, agent: object) -> Any:
    """The space of an agent, where there is one for each."""
    by_agent = getattr(space, "spaces", None)
    return by_agent[agent] if isinstance(by_agent, Mapping) and agent in by_agent else space


def _all_in(space: Any, values: Values) -> bool:
    return all(
        _of_agent(space, agent).contains(value)
        for by_agent in values.values()
        for agent, value in by_agent.items()
    )
