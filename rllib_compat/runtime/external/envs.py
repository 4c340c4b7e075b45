"""`ExternalEnv` and `ExternalMultiAgentEnv`: simulators that ask for actions, in a thread.

The user's thread calls `start_episode`, `get_action` (or `log_action`), `log_returns` and
`end_episode`, as ever; their class is still Ray's (`ray/rllib/env/external_env.py`). Here the other
end is served: a `step` answers the thread's last question and waits for the next one.
"""

from __future__ import annotations

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

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig

# The key of an info under which an action travels that the simulator has chosen itself.
LOGGED = "__logged_action__"
_POLL_SECONDS = 1.0
# What the old API stack calls the agent of an environment that has one.
_ONLY_AGENT = "agent0"
_GOES_ON = {"__all__": False}
_Read = TypeVar("_Read")


def is_external(env: object) -> bool:
    """Whether `env` is one of RLlib's external environments."""
    return all(hasattr(env, name) for name in ("start_episode", "get_action", "log_returns"))


def is_multi_agent(env: object) -> bool:
    """Whether an external environment has many agents."""
    return isinstance(env, ExternalMultiAgentEnv)


class ServedEnv:
    """An external environment as one that is stepped: of one agent or of many, as it is itself.

    Episodes are served one after the other; an environment that runs several at the same time has
    to run each in a thread of its own, or it waits for ever.

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

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, Any]:  # noqa: ARG002
        """Waits for the first observation of an episode that the simulator has started.

        A reset in the middle of one can't tell the simulator anything: it goes on where it is.
        """
        if not self.external_env.is_alive():
            self.external_env.start()
        if self._episode is None:
            self._episode, self._last = self._wait(self._ongoing_episodes)
        return self._last["obs"], self._info(self._last)

    def step(self, action: object) -> tuple[Any, Any, Any, Any, Any]:
        """Gives the simulator its action and waits for what comes of it."""
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
        """Lets the thread be: it is a daemon."""

    def __getattr__(self, name: str) -> Any:
        if name in ("external_env", "env") or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.external_env, name)

    def _ongoing_episodes(self) -> list[Any]:
        return list(environments.ongoing_episodes(self.external_env).values())

    def _wait(self, episodes: Callable[[], Iterable[Any]]) -> tuple[Any, Any]:
        """The first of some episodes that has something to say, and what it says."""

        def read() -> tuple[Any, Any] | None:
            said = ((episode, episode.get_data()) for episode in episodes())
            return next((pair for pair in said if pair[1] is not None), None)

        found = _wait(self.external_env, read)
        assert found is not None
        return found

    def _info(self, item: dict[str, Any]) -> Any:
        info = dict(item["info"] or {})
        agents = info.values() if self._multi_agent else [info]
        if any(isinstance(i, dict) and i.get("training_enabled") is False for i in agents):
            raise LegacyEnvError(
                "start_episode(training_enabled=False): training uses all steps of an env runner.",
                where="$.env",
                fix="pass api_stack='old', or leave such episodes out",
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
    """An external environment for the old API stack, with any number of episodes at a time.

    That stack's sampler refuses Ray's own adapter of it, which gives each episode a number of its
    own, so that what is left of a fragment when it ends is never collected, and which loses an end
    that comes while it looks. Here the next episode takes the number of one that has ended.

    Args:
        env: The external environment; its thread starts now.
    """

    def __init__(self, env: Any) -> None:
        self.external_env = env
        self._multi_agent = is_multi_agent(env)
        self._numbers: dict[Any, int] = {}
        env.start()

    @property
    def observation_space(self) -> Any:  # noqa: D102
        return self.external_env.observation_space

    @property
    def action_space(self) -> Any:  # noqa: D102
        return self.external_env.action_space

    def poll(self) -> tuple[dict[int, Any], ...]:
        """What episodes have to say, as soon as one has.

        Returns:
            Observations, rewards, terminateds, truncateds, infos and logged actions; each a dict by
            the episodes' numbers of dicts by agents.
        """
        episodes = environments.ongoing_episodes(self.external_env)

        def read() -> dict[Any, dict[str, Any]]:
            items = {episode.episode_id: episode.get_data() for episode in list(episodes.values())}
            return {episode: item for episode, item in items.items() if item is not None}

        told: tuple[dict[int, Any], ...] = ({}, {}, {}, {}, {}, {})
        for episode, item in _wait(self.external_env, read).items():
            taken = self._numbers.values()
            free = next(number for number in itertools.count() if number not in taken)
            number = self._numbers.setdefault(episode, free)
            parts = self._parts(item)
            for part, said in zip(told, parts, strict=False):
                part[number] = said
            if parts[2]["__all__"]:
                del episodes[episode]
        self._numbers = {
            e: n for e, n in self._numbers.items() if not told[2].get(n, _GOES_ON)["__all__"]
        }
        return told

    def _parts(self, item: dict[str, Any]) -> list[dict[Any, Any]]:
        parts = [item["obs"], item["reward"], item["terminated"], item["truncated"], item["info"]]
        if item.get("off_policy_action") is not None:
            parts.append(item["off_policy_action"])
        if not self._multi_agent:
            parts = [{_ONLY_AGENT: part} for part in parts]
            for ended in parts[2:4]:
                ended["__all__"] = ended[_ONLY_AGENT]
        for agent in parts[0]:
            for part, none in zip(parts[1:5], (0.0, False, False, {}), strict=True):
                part.setdefault(agent, none)
        return parts

    def send_actions(self, action_dict: Mapping[int, Any]) -> None:
        """Gives episodes their actions."""
        episodes = environments.ongoing_episodes(self.external_env)
        ids = {number: episode for episode, number in self._numbers.items()}
        for number, actions in action_dict.items():
            action = actions if self._multi_agent else actions[_ONLY_AGENT]
            episodes[ids[number]].action_queue.put(action)


def _wait(env: Any, read: Callable[[], _Read]) -> _Read:
    """What `read` finds, as soon as it finds something that episodes have to say."""
    told = environments.news(env)
    with told:
        while not (found := read()):
            if not env.is_alive():
                raise LegacyEnvError(
                    f"The thread of {type(env).__name__} has ended.",
                    where="$.env",
                    fix="run() has to loop forever; an error in it is in the worker's log. "
                    "Episodes that wait for each other in one thread need api_stack='old'",
                )
            told.wait(_POLL_SECONDS)
    return found


def record_logged_actions(config: AlgorithmConfig) -> None:
    """Makes episodes hold the actions that simulators have chosen, where they have."""
    inner = connectors.module_to_env_factory(config)
    if not (isinstance(inner, partial) and inner.func is with_logged_actions):
        config.env_runners(module_to_env_connector=partial(with_logged_actions, inner))


@public("rllib_compat.adapters")
def with_logged_actions(
    inner: Callable[..., Any] | None, env: object = None, *spaces: object
) -> list[Any]:
    """Makes the connectors from the module to an environment, and for simulators one more."""
    own = connectors.make_connectors(inner, env, *spaces)
    envs = environments.sub_environments(getattr(env, "unwrapped", env))
    external = any(isinstance(getattr(e.unwrapped, "env", None), ServedEnv) for e in envs)
    return [*own, LoggedActions()] if external else own


@public("rllib_compat.adapters")
class LoggedActions(ConnectorV2):  # type: ignore[misc]  # Ray has no types
    """Puts the action that the simulator has logged in the place of the module's."""

    def __call__(self, *, batch: Mapping[str, Any], episodes: Iterable[Any], **_: object) -> Any:
        """Replaces actions in `batch`, of the episodes whose last info holds one."""
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
            # One that is about to be reset has nothing yet.
            if part.is_reset and not part.is_done and LOGGED in (info := part.get_infos(-1)):
                yield (episode.id_, agent), info[LOGGED]
