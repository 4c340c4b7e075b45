"""Adapts `ExternalEnv` and `ExternalMultiAgentEnv`: simulators in a thread that ask for actions.

The user's thread calls `start_episode`, `get_action` (or `log_action`), `log_returns` and
`end_episode` of Ray's class (`ray/rllib/env/external_env.py`). The adapters do the other side: a
`step` passes the action to the thread, and waits for its next observation.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from ray.rllib.connectors.connector_v2 import ConnectorV2
from ray.rllib.env.base_env import BaseEnv
from ray.rllib.env.external_multi_agent_env import ExternalMultiAgentEnv

from rllib_compat.neutral.errors import LegacyEnvError
from rllib_compat.neutral.public import public
from rllib_compat.ray_versions import connectors, environments
from rllib_compat.runtime import gym_api
from rllib_compat.runtime.multi_agent import AgentSpaces

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig

    from rllib_compat.runtime.env_settings import EnvSettings

# The key of an info for an action that the simulator has chosen itself.
LOGGED = "__logged_action__"
_POLL_SECONDS = 1.0
# The id of the agent of a single-agent environment on the old API stack.
_ONLY_AGENT = "agent0"
_NOT_DONE = {"__all__": False}
_Read = TypeVar("_Read")


def is_external(env: object) -> bool:
    """Whether `env` is one of RLlib's external environments."""
    return all(hasattr(env, name) for name in ("start_episode", "get_action", "log_returns"))


def is_multi_agent(env: object) -> bool:
    """Whether an external environment has several agents."""
    return isinstance(env, ExternalMultiAgentEnv)


class ServedEnv:
    """An external environment with `reset` and `step`, of one or of several agents.

    Episodes are processed one after the other. An environment with several episodes at a time has
    to run each in its own thread; otherwise it waits forever.

    Args:
        env: The external environment; its thread starts with the first reset.
    """

    def __init__(self, env: Any) -> None:
        self.external_env = env
        self.observation_space = env.observation_space
        self.action_space = env.action_space
        self._multi_agent = is_multi_agent(env)
        self._episode: Any = None
        self._last: dict[str, Any] = {}

    def reset(self, *, seed: int | None = None, options: object = None) -> tuple[Any, Any]:  # noqa: ARG002
        """Waits for the first observation of an episode that the simulator has started.

        A reset during an episode has no effect on the simulator, which continues.
        """
        if not self.external_env.is_alive():
            self.external_env.start()
        if self._episode is None:
            self._episode, self._last = self._wait(self._ongoing_episodes)
        return self._last["obs"], self._info(self._last)

    def step(self, action: object) -> tuple[Any, Any, Any, Any, Any]:
        """Passes the action to the simulator, and waits for the next observation."""
        episode = self._episode
        episode.action_queue.put(action)
        _, item = self._wait(lambda: [episode])
        self._last = item
        if item["terminated"]["__all__"] if self._multi_agent else item["terminated"]:
            del environments.ongoing_episodes(self.external_env)[episode.episode_id]
            self._episode = None
        info = self._info(item)
        return item["obs"], item["reward"], item["terminated"], item["truncated"], info

    def close(self) -> None:
        """Does nothing: the thread is a daemon."""

    def __getattr__(self, name: str) -> Any:
        if name in ("external_env", "env") or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.external_env, name)

    def _ongoing_episodes(self) -> list[Any]:
        return list(environments.ongoing_episodes(self.external_env).values())

    def _wait(self, episodes: Callable[[], Iterable[Any]]) -> tuple[Any, Any]:
        """Waits for the first of some episodes with data, and returns both."""

        def read() -> tuple[Any, Any] | None:
            pairs = ((episode, episode.get_data()) for episode in episodes())
            return next((pair for pair in pairs if pair[1] is not None), None)

        found = _wait(self.external_env, read)
        assert found is not None
        return found

    def _info(self, item: dict[str, Any]) -> Any:
        info = dict(item["info"] or {})
        agents = info.values() if self._multi_agent else [info]
        if any(isinstance(i, dict) and i.get("training_enabled") is False for i in agents):
            raise LegacyEnvError(
                "start_episode(training_enabled=False) has no effect on the new API stack, which "
                "trains on all steps of an env runner.",
                where="$.env",
                fix="pass api_stack='old', or do not start such episodes",
            )
        logged = item.get("off_policy_action")
        if logged is None:
            return info
        if not self._multi_agent:
            return {**info, LOGGED: logged}
        for agent, action in logged.items():
            info[agent] = {**(info.get(agent) or {}), LOGGED: action}
        return info


class PolledEnv(BaseEnv):  # type: ignore[misc]  # Ray has no types
    """An external environment for the old API stack, with several episodes at a time.

    The stack's sampler does not take Ray's own adapter, which gives each episode a new number. Then
    the rest of a fragment is never collected when an episode ends, and an end can be lost during a
    poll. This adapter reuses the numbers of ended episodes.

    Args:
        env: The external environment; its thread starts now.
        settings: The config's, which say what observations to check.
    """

    def __init__(self, env: Any, settings: EnvSettings) -> None:
        self.external_env = env
        self._multi_agent = is_multi_agent(env)
        self._numbers: dict[Any, int] = {}
        self._casts: dict[Any, Callable[[Any], Any]] = {}
        self._spaces = AgentSpaces(env, settings)
        if not self._multi_agent:
            check = gym_api.ObservationCheck(settings)
            space = env.observation_space
            _, self._casts[_ONLY_AGENT] = gym_api.adapt_observation_space(space, settings, check)
        env.start()

    @property
    def observation_space(self) -> Any:  # noqa: D102
        return self.external_env.observation_space

    @property
    def action_space(self) -> Any:  # noqa: D102
        return self.external_env.action_space

    def poll(self) -> tuple[dict[int, Any], ...]:
        """Waits until an episode has data, and returns the data of all episodes.

        Returns:
            Observations, rewards, terminateds, truncateds, infos and logged actions, each by the
            episode's number and by agent.
        """
        episodes = environments.ongoing_episodes(self.external_env)

        def read() -> dict[Any, dict[str, Any]]:
            items = {episode.episode_id: episode.get_data() for episode in list(episodes.values())}
            return {episode: item for episode, item in items.items() if item is not None}

        values: tuple[dict[int, Any], ...] = ({}, {}, {}, {}, {}, {})
        for episode, item in _wait(self.external_env, read).items():
            taken = self._numbers.values()
            free = next(number for number in itertools.count() if number not in taken)
            number = self._numbers.setdefault(episode, free)
            parts = self._parts(item)
            for by_number, part in zip(values, parts, strict=False):
                by_number[number] = part
            if parts[2]["__all__"]:
                del episodes[episode]
        self._numbers = {
            e: n for e, n in self._numbers.items() if not values[2].get(n, _NOT_DONE)["__all__"]
        }
        return values

    def _parts(self, item: dict[str, Any]) -> list[dict[Any, Any]]:
        names = ("obs", "reward", "terminated", "truncated", "info")
        parts = [item[name] for name in names]
        if item.get("off_policy_action") is not None:
            parts.append(item["off_policy_action"])
        if not self._multi_agent:
            parts = [{_ONLY_AGENT: part} for part in parts]
            for ended in parts[2:4]:
                ended["__all__"] = ended[_ONLY_AGENT]
        parts[0] = {agent: self._cast(agent, obs) for agent, obs in parts[0].items()}
        for agent in parts[0]:
            for part, none in zip(parts[1:5], (0.0, False, False, {}), strict=True):
                part.setdefault(agent, none)
        return parts

    def _cast(self, agent: Any, obs: object) -> Any:
        if agent not in self._casts:
            self._casts[agent] = lambda obs: obs
            # A mapping may need its episode, and a space may be known to the policy alone.
            with contextlib.suppress(AttributeError, TypeError, LegacyEnvError):
                _, self._casts[agent], _ = self._spaces.of(agent)
        return self._casts[agent](obs)

    def send_actions(self, action_dict: Mapping[int, Any]) -> None:
        """Passes actions to episodes."""
        episodes = environments.ongoing_episodes(self.external_env)
        ids = {number: episode for episode, number in self._numbers.items()}
        for number, actions in action_dict.items():
            action = actions if self._multi_agent else actions[_ONLY_AGENT]
            episodes[ids[number]].action_queue.put(action)


def _wait(env: Any, read: Callable[[], _Read]) -> _Read:
    """Waits until `read` returns data of episodes."""
    condition = environments.news(env)
    with condition:
        while not (found := read()):
            if not env.is_alive():
                raise LegacyEnvError(
                    f"The thread of {type(env).__name__} has ended, because run() has returned.",
                    where="$.env",
                    fix="make run() loop forever; its error, if any, is in the worker's log; if "
                    "its episodes wait for each other, pass api_stack='old'",
                )
            condition.wait(_POLL_SECONDS)
    return found


def record_logged_actions(config: AlgorithmConfig) -> None:
    """Adds `LoggedActions`, which records actions that simulators have chosen, to a config."""
    inner = connectors.module_to_env_factory(config)
    if not (isinstance(inner, partial) and inner.func is with_logged_actions):
        config.env_runners(module_to_env_connector=partial(with_logged_actions, inner))


@public("rllib_compat.adapters")
def with_logged_actions(
    inner: Callable[..., Any] | None, env: object = None, *spaces: object
) -> list[Any]:
    """Creates the module-to-env connectors, with `LoggedActions` for external environments."""
    own = connectors.make_connectors(inner, env, *spaces)
    envs = environments.sub_environments(getattr(env, "unwrapped", env))
    external = any(isinstance(getattr(e.unwrapped, "env", None), ServedEnv) for e in envs)
    return [*own, LoggedActions()] if external else own


@public("rllib_compat.adapters")
class LoggedActions(ConnectorV2):  # type: ignore[misc]  # Ray has no types
    """Replaces the module's action with the one that the simulator has logged."""

    def __call__(self, *, batch: Mapping[str, Any], episodes: Iterable[Any], **_: object) -> Any:
        """Replaces the actions of episodes whose last info has one."""
        logged = dict(_logged_actions(episodes))

        def replace_action(
            action: object,
            episode_id: object,
            agent_id: object,
            module_id: object,  # noqa: ARG001
        ) -> Any:
            return logged.get((episode_id, agent_id), action)

        if logged:
            self.foreach_batch_item_change_in_place(batch, column="actions", func=replace_action)
        return batch


def _logged_actions(episodes: Iterable[Any]) -> Iterable[tuple[Any, Any]]:
    for episode in episodes:
        parts = getattr(episode, "agent_episodes", {None: episode})
        for agent, part in parts.items():
            # An episode before its reset has no infos.
            if part.is_reset and not part.is_done and LOGGED in (info := part.get_infos(-1)):
                yield (episode.id_, agent), info[LOGGED]
