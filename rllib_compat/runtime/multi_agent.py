"""Adapters from old multi-agent environments to the installed Ray's `MultiAgentEnv`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import gymnasium
from ray.rllib.env.multi_agent_env import MultiAgentEnv
from ray.rllib.env.wrappers.group_agents_wrapper import GroupAgentsWrapper

from rllib_compat.neutral.errors import LegacyEnvError
from rllib_compat.ray_versions import connectors, environments
from rllib_compat.ray_versions.types import EnvRunner
from rllib_compat.runtime import gym_api
from rllib_compat.runtime.env_settings import EnvSettings
from rllib_compat.runtime.gym_api import (
    LegacyEnvWrapper,
    ObservationCaster,
    ObservationCheck,
    metadata_of,
)
from rllib_compat.runtime.policy_mapping import ONLY_AGENT

ALL = "__all__"


def is_multi_agent(env: object) -> bool:
    """Whether `env` is derived from Ray's `MultiAgentEnv`."""
    return isinstance(env, MultiAgentEnv)


def adapt_multi_agent(env: object, settings: EnvSettings) -> MultiAgentEnv:
    """Wraps `env`, unless it is a complete `MultiAgentEnv` and no setting needs an adapter."""
    _adapt_inside_groups(env)
    complete = (
        isinstance(env, MultiAgentEnv)
        and gym_api.has_gymnasium_api(env)
        and env.possible_agents
        and env.observation_spaces
        and env.action_spaces
    )
    plain = complete and not (settings.checks_observations or settings.needs_adapter)
    return env if plain else MultiAgentAdapter(env, settings)


def _adapt_inside_groups(env: object) -> None:
    """Adapts an old environment inside Ray's `GroupAgentsWrapper`, which takes the current API.

    `with_agent_groups` adds that wrapper at any depth of an environment.
    """
    layer = env
    while (inner := getattr(layer, "env", None)) is not None:
        adapted = getattr(inner, "wraps_legacy_env", False) or gym_api.has_gymnasium_api(inner)
        if isinstance(layer, GroupAgentsWrapper) and not adapted:
            layer.env = MultiAgentAdapter(inner, _settings_of_members(layer))
            return
        layer = inner


def _settings_of_members(groups: GroupAgentsWrapper) -> EnvSettings:
    """Returns settings in which each agent has its part of the spaces of its group."""
    spaces: dict[Any, tuple[Any, Any]] = {}
    for group, agents in groups.groups.items():
        pair = [
            space[group] if isinstance(space, gymnasium.spaces.Dict) else space
            for space in (groups.observation_space, groups.action_space)
        ]
        if all(isinstance(space, gymnasium.spaces.Tuple) for space in pair):
            spaces |= dict(zip(agents, zip(*pair, strict=True), strict=True))
    return EnvSettings(
        env=None,
        policy_spaces=spaces,
        policy_mapping_fn=lambda agent, *_, **__: agent if agent in spaces else None,
    )


class MultiAgentAdapter(LegacyEnvWrapper, MultiAgentEnv):  # type: ignore[misc]  # Ray has no types
    """A `MultiAgentEnv` around an environment of the old API.

    The old API declared neither agents nor their spaces. The agents are those that the environment
    declares, else those that the first `reset` returns, and any that appear later. An agent's space
    is its own, else its policy's, else the environment's single one.

    Raises:
        LegacyEnvError: The environment lacks `reset` or `step`, or an agent has no space.
    """

    def __init__(self, env: object, settings: EnvSettings) -> None:
        super().__init__()
        gym_api.check(env, "reset", "step")
        self.env = env
        self.metadata = metadata_of(env)
        self._settings = settings
        self._length = 0
        self.last_raw_obs: dict[Any, Any] = {}
        # The unclipped rewards of this episode by agent, if rewards are clipped for the learner.
        self.unclipped: dict[Any, float] = {}
        self._continue_from: tuple[Any, dict[Any, Any]] | None = None
        self.observation_spaces: dict[Any, gymnasium.Space[Any]] = {}
        self.action_spaces: dict[Any, gymnasium.Space[Any]] = {}
        self._casts: dict[Any, ObservationCaster] = {}
        self._spaces = AgentSpaces(env, settings)
        # The agents of the last observation in its order, which is also that of the actions.
        self._observing: list[Any] = []
        # What each has observed last in this episode, and who has acted since.
        self._observed: dict[Any, Any] = {}
        self._waiting: set[Any] = set()
        self.agents: list[Hashable] = []
        self.possible_agents: list[Hashable] = []
        agents = _declared_agents(env)
        if not agents:
            first = gym_api.reset(env, None, None)[0]
            agents = (
                list(self._apply_observation_fn(first))
                if isinstance(first, Mapping)
                else [ONLY_AGENT]
            )
        self._one_agent = agents == [ONLY_AGENT] and ONLY_AGENT not in _declared_agents(env)
        for agent in agents:
            self._add_agent(agent)
        self.observation_space = gymnasium.spaces.Dict(self.observation_spaces)
        self.action_space = gymnasium.spaces.Dict(self.action_spaces)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[Any, Any], dict[Any, Any]]:
        """Starts an episode."""
        self._length, self.unclipped, self._waiting = 0, {}, set()
        if self._continue_from is not None:
            (obs, infos), self._continue_from = self._continue_from, None
            self._observed = dict(obs)
            return obs, infos
        obs, infos = gym_api.reset(self.env, seed, options)
        for agent in self.agents:
            self._update_spaces(agent)  # a callback may have changed the environment
        if self._one_agent:
            obs, infos = {ONLY_AGENT: obs}, {ONLY_AGENT: infos}
        obs = self._adapt_observations(obs)
        self._observed = dict(obs)
        return obs, _for_agents(infos, obs)

    def step(
        self, action_dict: dict[Any, Any]
    ) -> tuple[dict[Any, Any], dict[Any, float], dict[Any, bool], dict[Any, bool], dict[Any, Any]]:
        """Takes one step; converts `dones` to terminations and truncations."""
        obs, rewards, terminateds, truncateds, infos = self._step(action_dict)
        obs = self._adapt_observations(obs)
        infos = _for_agents(infos, obs)
        rewards = {agent: float(r or 0.0) for agent, r in rewards.items() if agent != ALL}
        for agent in [agent for agent in rewards if agent not in self._casts]:  # observes later
            with contextlib.suppress(LegacyEnvError):
                self._add_agent(agent)
        if limit := self._settings.clip_rewards:
            for agent, reward in rewards.items():
                self.unclipped[agent] = self.unclipped.get(agent, 0.0) + reward
            rewards = {agent: gym_api.clip(reward, limit) for agent, reward in rewards.items()}
        self._length += 1
        if self._settings.no_done_at_end:
            truncateds |= {agent: True for agent, is_done in terminateds.items() if is_done}
            terminateds = {ALL: False}
        ended = terminateds[ALL] or truncateds[ALL]
        if self._length == self._settings.horizon and not ended:
            truncateds[ALL] = True
            if self._settings.soft_horizon:
                self._continue_from = (obs, infos)
        self._observed.update(obs)
        waiting = (self._waiting | action_dict.keys()) - obs.keys()
        # Today's Ray asks for a last observation of each agent that has acted and is truncated, and
        # takes an episode for terminated whose agents are truncated one by one.
        cut = {agent for agent in waiting if truncateds[ALL] or truncateds.get(agent)}
        self._waiting = {agent for agent in waiting - cut if not terminateds.get(agent)}
        if cut:
            obs = {**obs, **{agent: self._observed[agent] for agent in cut}}
            rewards = {**dict.fromkeys(cut, 0.0), **rewards}
        if truncateds[ALL]:
            truncateds = {ALL: True}
        return obs, rewards, terminateds, truncateds, infos

    def get_observation_space(self, agent_id: object) -> gymnasium.Space[Any]:
        """Returns the agent's current observation space; episodes call this before the reset."""
        self._update_spaces(agent_id)
        return self.observation_spaces[agent_id]

    def get_action_space(self, agent_id: object) -> gymnasium.Space[Any]:
        """Returns the agent's current action space."""
        self._update_spaces(agent_id)
        return self.action_spaces[agent_id]

    def _step(self, actions: dict[Any, Any]) -> Any:
        if self._one_agent:
            obs, reward, terminated, truncated, info = gym_api.step(self.env, actions[ONLY_AGENT])
            flags = [{ONLY_AGENT: flag, ALL: flag} for flag in (terminated, truncated)]
            return {ONLY_AGENT: obs}, {ONLY_AGENT: reward}, *flags, {ONLY_AGENT: info}
        in_order = sorted(actions, key=self._place_of)
        result = self.env.step({agent: actions[agent] for agent in in_order})
        if len(result) == 5:
            obs, rewards, terminateds, truncateds, infos = result
        else:
            (obs, rewards, terminateds, infos), truncateds = result, {}
        terminateds = {agent: bool(flag) for agent, flag in terminateds.items()}
        truncateds = {ALL: False, **{agent: bool(flag) for agent, flag in truncateds.items()}}
        if ALL not in terminateds:
            raise LegacyEnvError(
                f"{type(self.env).__name__}.step() returned dones without `{ALL}`.",
                where="$.env",
                fix=f"return dones[{ALL!r}]: True when the episode has ended",
            )
        return obs, rewards, terminateds, truncateds, infos

    def _place_of(self, agent: object) -> int:
        here = agent in self._observing
        return self._observing.index(agent) if here else len(self._observing)

    def _adapt_observations(self, obs: Mapping[Any, Any]) -> dict[Any, Any]:
        self._observing = list(obs)
        self.last_raw_obs.update(obs)
        obs = self._apply_observation_fn(obs)
        for agent in obs:
            if agent not in self._casts:
                self._add_agent(agent)
        return {agent: self._casts[agent](value) for agent, value in obs.items()}

    def _apply_observation_fn(self, obs: Mapping[Any, Any]) -> Mapping[Any, Any]:
        if self._settings.observation_fn is None:
            return obs
        absent = dict.fromkeys(("worker", "base_env", "policies", "episode"))
        return self._settings.observation_fn(agent_obs=dict(obs), **absent)

    def _add_agent(self, agent: Hashable) -> None:
        self._update_spaces(agent)
        self.agents.append(agent)
        self.possible_agents.append(agent)

    def _update_spaces(self, agent: Hashable) -> None:
        seen, cast, action = self._spaces.of(agent, is_only=self._one_agent)
        self.observation_spaces[agent], self._casts[agent] = seen, cast
        self.action_spaces[agent] = gym_api.to_gymnasium(action, "action_space")


class AgentSpaces:
    """The spaces of the agents of an environment.

    Args:
        env: The environment.
        settings: The config's, which have policies and say which observations to check.
    """

    def __init__(self, env: object, settings: EnvSettings) -> None:
        self._env, self._settings = env, settings
        # As in old Rays, the agents of a policy share its checks.
        self._checks: dict[str | None, ObservationCheck] = {}

    def of(
        self, agent: Hashable, *, is_only: bool = False
    ) -> tuple[gymnasium.Space[Any], ObservationCaster, Any]:
        """Returns an agent's observation space, its observations' caster, and its action space.

        Raises:
            LegacyEnvError: It has none.
        """
        settings = self._settings
        mapping = settings.policy_mapping_fn
        policy = call_mapping(mapping, agent) if mapping else None
        observation, action = _agent_spaces(self._env, agent, policy, settings)
        env, named = (self._env, None) if is_only else (None, agent)
        if policy not in self._checks:
            self._checks[policy] = ObservationCheck(settings, env)
        check = self._checks[policy]
        seen, cast = gym_api.adapt_observation_space(observation, settings, check, named)
        return seen, cast, action


def _for_agents(infos: Mapping[Any, Any] | None, obs: Mapping[Any, Any]) -> dict[Any, Any]:
    """Returns the infos of agents with an observation; the installed Ray rejects others."""
    return {agent: dict(info or {}) for agent, info in (infos or {}).items() if agent in obs}


def _declared_agents(env: object) -> list[Hashable]:
    for name in ("possible_agents", "agents", "_agent_ids"):
        agents = getattr(env, name, None)
        # The attribute `agents` of an old environment may hold something else.
        if agents and isinstance(agents, (list, tuple, set)) and _are_ids(agents):
            return sorted(agents, key=str) if isinstance(agents, set) else list(agents)
    return []


def _are_ids(agents: Iterable[Any]) -> bool:
    return all(isinstance(agent, (str, int)) for agent in agents)


def _agent_spaces(
    env: object, agent: Hashable, policy: str | None, settings: EnvSettings
) -> tuple[Any, Any]:
    """Returns an agent's observation and action space: its own, its policy's or the shared one."""
    of_policy = (None, None) if policy is None else settings.policy_spaces.get(policy, (None, None))
    found = []
    for name, policy_space in zip(("observation_space", "action_space"), of_policy, strict=True):
        by_agent = getattr(env, name + "s", None) or {}
        shared = getattr(env, name, None)
        parts = getattr(shared, "spaces", None)
        own = _of_agent(by_agent, agent) or _of_agent(parts, agent)
        space = next((s for s in (own, policy_space, shared) if s is not None), None)
        named = policy is not None and policy not in settings.policy_spaces
        if space is None and named and settings.policy_spaces:
            raise LegacyEnvError(
                f"The mapping function gives agent {agent!r} the policy {policy!r}, which is not "
                f"one of {', '.join(map(repr, list(settings.policy_spaces)[:10]))}.",
                where="$.multiagent.policy_mapping_fn",
                fix="map the agent to one of these; or define spaces for each agent in the "
                "environment, and add a module for the policy",
            )
        if space is None:
            raise LegacyEnvError(
                f"Neither the environment nor the config has the {name} of agent {agent!r}.",
                where="$.multiagent.policies",
                fix=f"set the policy's spaces in the config, or env.{name}",
            )
        found.append(space)
    return found[0], found[1]


def _of_agent(by_agent: object, agent: Hashable) -> Any:
    """Returns an agent's space; ids may be numbers in one place and strings in another."""
    if not isinstance(by_agent, Mapping):
        return None
    if agent in by_agent:
        return by_agent[agent]
    return next((space for name, space in by_agent.items() if str(name) == str(agent)), None)


def call_mapping(mapping: Callable[..., Any], agent: Hashable, episode: object = None) -> Any:
    """Calls a policy mapping function of any Ray: `(agent_id)` or `(agent_id, episode, …)`."""
    import inspect

    try:
        inspect.signature(mapping).bind(agent)
    except TypeError:
        return mapping(agent, episode, worker=None)
    return mapping(agent)


class LiveSpaces(Mapping[Any, Any]):
    """A mapping of an environment's agents to their current spaces, in the form for connectors.

    Ray's connectors read the agents' spaces once, when they are created. Old environments could add
    agents at any time, and a callback can change their spaces. So the connectors get this view on
    the environment's spaces.

    Args:
        env: The environment.
        name: "action_spaces" or "observation_spaces".
        changes: Functions that change a space as the connectors before do.
    """

    def __init__(
        self, env: MultiAgentAdapter, name: str, changes: Sequence[Callable[[Any], Any]] = ()
    ) -> None:
        self._env = env
        self._name = name
        self._changes = changes
        self._made: dict[Any, tuple[Any, Any]] = {}

    def __getitem__(self, agent: object) -> Any:
        from ray.rllib.utils.spaces.space_utils import get_base_struct_from_space

        space = getattr(self._env, self._name)[agent]
        known, struct = self._made.get(agent, (None, None))
        if known is not space:
            changed = space
            for change in self._changes:
                changed = change(changed)
            struct = get_base_struct_from_space(changed)
            self._made[agent] = (space, struct)
        return struct

    def __iter__(self) -> Iterator[Any]:
        return iter(getattr(self._env, self._name))

    def __len__(self) -> int:
        return len(getattr(self._env, self._name))


def track_agent_spaces(env_runner: EnvRunner) -> None:
    """Makes an env runner's connectors follow the current spaces of its environment."""
    from rllib_compat.runtime.observation_connectors import LegacyObservations

    env = env_runner.env
    envs = [e.unwrapped for e in environments.sub_environments(getattr(env, "unwrapped", env))]
    adapter = next((e for e in envs if isinstance(e, MultiAgentAdapter)), None)
    if adapter is None:
        return
    changes = [
        partial(connector.recompute_output_observation_space, input_action_space=None)
        for connector in connectors.env_to_module(env_runner).connectors
        if isinstance(connector, LegacyObservations)
    ]
    tables = {
        "action": LiveSpaces(adapter, "action_spaces"),
        "observation": LiveSpaces(adapter, "observation_spaces", changes),
    }
    connectors.set_agent_spaces(env_runner, tables, adapter.observation_spaces)
