"""`ray.rllib.rollout` of Ray 0.5 – 2.0, and `ray.rllib.evaluate`: what scripts imported of them."""

from __future__ import annotations

import argparse
import collections
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from rllib_compat.formats.paths import local_path
from rllib_compat.runtime.policy_mapping import ONLY_POLICY, MappingFn
from rllib_compat.trainer.classes import class_of_algorithm
from rllib_compat.trainer.inference import ComputedAction, Request
from rllib_compat.trainer.rollouts import Episode, Recorder, make_env, roll_out, write_video

__all__ = [
    "EXAMPLE_USAGE",
    "DefaultMapping",
    "RolloutSaver",
    "create_parser",
    "default_policy_agent_mapping",
    "keep_going",
    "main",
    "rollout",
    "run",
]

EXAMPLE_USAGE = """
rollout.py checkpoint_10/checkpoint-10 --run DQN --env CartPole-v0 --steps 1000 --out rollouts.pkl
"""

#: Flags → arguments of `add_argument`; a flag without a type or a default is a switch.
_FLAGS: dict[str, dict[str, Any]] = {
    "--local-mode": {"help": "ignored: Ray has none any more"},
    "--render": {"help": "show the environment"},
    "--no-render": {"help": "do not show it (the default)"},
    "--video-dir": {"type": str, "help": "a folder for videos"},
    "--steps": {"default": 10000, "help": "how many at most; 0: any number"},
    "--episodes": {"default": 0, "help": "how many; 0: any number"},
    "--out": {"default": None, "help": "a file for the steps"},
    "--config": {"type": json.loads, "default": "{}", "help": "keys that replace the checkpoint's"},
    "--save-info": {"help": "write infos, too"},
    "--use-shelve": {"help": "write a shelf"},
    "--track-progress": {"help": "keep the progress in a file beside it"},
}


class DefaultMapping(collections.defaultdict[Any, Any]):
    """A defaultdict whose factory gets the key."""

    def __missing__(self, key: object) -> Any:
        """Makes the value."""
        make: Any = self.default_factory
        self[key] = value = make(key)
        return value


def default_policy_agent_mapping(unused_agent_id: object) -> str:
    """The policy of all agents, if there is only one."""
    return ONLY_POLICY


def keep_going(steps: int, num_steps: int, episodes: int, num_episodes: int) -> bool:
    """Whether there are not enough steps or episodes yet."""
    if num_episodes:
        return episodes < num_episodes
    return steps < num_steps if num_steps else True


class RolloutSaver(Recorder):
    """Writes episodes into a file: a pickle with a list of them, or a shelf.

    Args:
        outfile: The file; None: nothing is written.
        use_shelve: Whether it is a shelf.
        write_update_file: Whether a file beside it has the progress.
        target_steps: Ignored: the progress is in episodes.
        target_episodes: Ignored.
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
        self.outfile = outfile
        path = local_path(outfile) if outfile else None
        super().__init__(path, shelf=use_shelve, infos=save_info, progress=write_update_file)
        self._episode = Episode()

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
        self.add(self._episode)


def rollout(
    agent: object,
    env_name: str | None = None,
    num_steps: int = 10000,
    num_episodes: int = 0,
    saver: RolloutSaver | None = None,
    no_render: bool = True,
    video_dir: str | None = None,
) -> None:
    """Plays episodes with a trainer, and prints the reward of each.

    Args:
        agent: The trainer.
        env_name: Ignored, as in old Rays: the trainer has the environment.
        num_steps: How many steps to take, unless episodes are asked for.
        num_episodes: How many episodes to play.
        saver: Writes them.
        no_render: Whether nothing is shown.
        video_dir: Where videos of the episodes go.
    """
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
    """A running trainer as an actor."""

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


def create_parser(parser_creator: Callable[..., Any] | None = None) -> Any:
    """The parser of the flags.

    Args:
        parser_creator: Makes a parser; by default that of argparse.
    """
    parser = (parser_creator or argparse.ArgumentParser)(
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Plays a trained algorithm.",
        epilog=EXAMPLE_USAGE,
    )
    parser.add_argument("checkpoint", type=str, nargs="?", help="none: nothing is trained")
    required = parser.add_argument_group("required named arguments")
    required.add_argument("--run", type=str, required=True, help="the algorithm")
    required.add_argument("--env", type=str, help="the environment; by default the config's")
    for flag, arguments in _FLAGS.items():
        switch: dict[str, Any] = (
            {} if "type" in arguments or "default" in arguments else {"action": "store_true"}
        )
        parser.add_argument(flag, **arguments, **switch)
    return parser


def run(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """Plays a checkpoint, which is read as data, or an algorithm that is not trained.

    Args:
        args: The parsed flags.
        parser: The parser, which reports missing flags.
    """
    given = {**args.config, **args.config.get("evaluation_config", {})}
    config = {key: value for key, value in given.items() if key != "evaluation_config"}
    kind = class_of_algorithm(args.run)
    if args.checkpoint and not config:
        trainer = kind.from_checkpoint(args.checkpoint)  # with its own config and environment
    elif args.env or "env" in config:
        trainer = kind(config={"env": args.env, **config} if args.env else config)
        if args.checkpoint:
            trainer.restore(args.checkpoint)
    else:
        parser.error("the following arguments are required: --env")
    steps, episodes = int(args.steps), int(args.episodes)
    saved = {"use_shelve": args.use_shelve, "save_info": args.save_info}
    with RolloutSaver(args.out, write_update_file=args.track_progress, **saved) as saver:
        video = args.video_dir and str(local_path(args.video_dir))
        rollout(trainer, args.env, steps, episodes, saver, not args.render, video)
    trainer.stop()


def main() -> None:
    """Runs the command line.

    Raises:
        ValueError: Flags say how to write, but not where.
    """
    parser = create_parser()
    args = parser.parse_args()
    if (args.use_shelve or args.track_progress) and not args.out:
        raise ValueError("--use-shelve and --track-progress say how to write: give --out, too.")
    run(args, parser)
