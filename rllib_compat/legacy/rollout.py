"""`ray.rllib.rollout` of Ray 0.5 – 2.0, and `ray.rllib.evaluate`: what scripts took from them."""

from __future__ import annotations

import collections
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from rllib_compat.runtime.policy_mapping import ONLY_POLICY, MappingFn
from rllib_compat.trainer.inference import ComputedAction, Request
from rllib_compat.trainer.rollouts import Episode, Recorder, make_env, roll_out, write_video

__all__ = [
    "DefaultMapping",
    "RolloutSaver",
    "default_policy_agent_mapping",
    "keep_going",
    "rollout",
]


class DefaultMapping(collections.defaultdict[Any, Any]):
    """A defaultdict whose factory gets the key."""

    def __missing__(self, key: object) -> Any:
        """Makes the value."""
        make: Any = self.default_factory
        self[key] = value = make(key)
        return value


def default_policy_agent_mapping(unused_agent_id: object) -> str:
    """The policy of all agents where there is one only."""
    del unused_agent_id
    return ONLY_POLICY


def keep_going(steps: int, num_steps: int, episodes: int, num_episodes: int) -> bool:
    """Whether there are not enough steps or episodes yet."""
    if num_episodes:
        return episodes < num_episodes
    return steps < num_steps if num_steps else True


class RolloutSaver:
    """Writes episodes into a file: a pickle with a list of them, or a shelf.

    Args:
        outfile: The file; None: nothing is written.
        use_shelve: Whether it is a shelf.
        write_update_file: Whether a file beside it tells how far it is.
        target_steps: Means nothing: the file tells episodes.
        target_episodes: The same.
        save_info: Whether infos are kept.
    """

    def __init__(
        self,
        outfile: Any = None,
        use_shelve: bool = False,
        write_update_file: bool = False,
        target_steps: int | None = None,
        target_episodes: int | None = None,
        save_info: bool = False,
    ) -> None:
        del target_steps, target_episodes
        self.outfile = outfile
        path = Path(outfile) if outfile else None
        self._recorder = Recorder(
            path, shelf=use_shelve, infos=save_info, progress=write_update_file
        )
        self._episode = Episode()

    def __enter__(self) -> RolloutSaver:
        self._recorder.__enter__()
        return self

    def __exit__(self, failed: type[BaseException] | None, *rest: object) -> None:
        self._recorder.__exit__(failed, *rest)

    def begin_rollout(self) -> None:
        """Begins an episode."""
        self._episode = Episode()

    def append_step(
        self,
        obs: object,
        action: object,
        next_obs: object,
        reward: object,
        done: object,
        info: object,
    ) -> None:
        """Adds a step to it."""
        if self.outfile:
            self._episode.steps += [[obs, action, next_obs, reward, done, info]]

    def end_rollout(self) -> None:
        """Ends it."""
        self._recorder.add(self._episode)

    def add(self, episode: Episode) -> None:
        """Takes a whole episode."""
        self._recorder.add(episode)


def rollout(
    agent: object,
    env_name: str | None = None,
    num_steps: int = 10000,
    num_episodes: int = 0,
    saver: RolloutSaver | None = None,
    no_render: bool = True,
    video_dir: str | None = None,
) -> None:
    """Plays episodes with a trainer, and prints what each came to.

    Args:
        agent: The trainer.
        env_name: Means nothing, as ever: the trainer's environment is played.
        num_steps: How many steps to take, unless episodes are asked for.
        num_episodes: How many episodes to play.
        saver: What writes them.
        no_render: Whether nothing is shown.
        video_dir: Where videos of the episodes go.
    """
    del env_name
    actor = _TrainerActor(agent)
    render = "rgb_array" if video_dir else None if no_render else "human"
    played = roll_out(
        actor,
        make_env(actor, render_mode=render),
        episodes=num_episodes,
        steps=0 if num_episodes else num_steps,
        keep=saver is not None,
        render=render,
    )
    for number, episode in enumerate(played):
        if saver is not None:
            saver.add(episode)
        if video_dir:
            write_video(episode.frames, Path(video_dir) / f"{number}.mp4", fps=30)
        print(f"Episode #{number}: reward: {episode.reward}")


class _TrainerActor:
    """A running trainer that acts."""

    def __init__(self, trainer: Any) -> None:
        self._trainer = trainer
        config = trainer.config
        self.env = trainer.algorithm.config.env
        self.env_config: Mapping[str, Any] = dict(config.get("env_config") or {})
        self.explore = bool(config.get("explore", True))
        mapping = (config.get("multiagent") or {}).get("policy_mapping_fn")
        self._mapping = MappingFn(mapping) if mapping is not None else None

    def policy_of(self, agent: object, episode: object) -> str:
        """The policy that the config's function gives the agent."""
        if self._mapping is None:
            return ONLY_POLICY
        return str(self._mapping(agent, episode or SimpleNamespace(id_="0")))

    def act(self, policy_id: str, request: Request, *, explore: bool) -> ComputedAction:
        """Computes one action."""
        action, state, extras = self._trainer.compute_single_action(
            request.observation,
            request.state,
            request.prev_action,
            request.prev_reward,
            policy_id=policy_id,
            full_fetch=True,
            explore=explore,
        )
        return ComputedAction(action, state, extras)
