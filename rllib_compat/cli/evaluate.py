"""`rllib-compat evaluate`: what `rllib rollout` and `rllib evaluate` did."""

from __future__ import annotations

import contextlib
import statistics
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rllib_compat.cli import named_modules, options, output, overview
from rllib_compat.neutral.extras import import_optional
from rllib_compat.neutral.origins import describe_place

if TYPE_CHECKING:
    from rllib_compat.trainer.rollouts import Episode

#: Env steps without --steps and --episodes, as in old Rays.
STEPS = 10_000


@click.command("evaluate")
@click.argument("checkpoint", type=options.PathOrAddress())
@click.option(
    "--run", "--algo", "--algorithm", "-r", "-a", help="The algorithm that was trained, e.g. PPO."
)
@click.option("--best", is_flag=True, help="Of a trial, the checkpoint with the highest return.")
@click.option("--env", "-e", help="The environment: a name, or module:Class.")
@click.option(
    "--config",
    "-c",
    type=options.ConfigOption(),
    help="Legacy keys that replace the checkpoint's; its config, if it has none.",
)
@click.option("--episodes", type=click.IntRange(0), help="How many; 0: as many as fit.")
@click.option(
    "--steps",
    type=click.IntRange(0),
    help=f"Env steps at most; 0: no limit.  [default: {STEPS:,} without --episodes]",
)
@click.option("--explore/--no-explore", default=None, help="Sample actions.  [default: its config]")
@click.option(
    "--seed", type=click.IntRange(0, 2**32 - 1), help="For the environment's first episode."
)
@click.option("--out", type=options.LocalPath(dir_okay=False), help="Write the steps.")
@click.option("--save-info", is_flag=True, help="Write infos, too.")
@click.option("--use-shelve", is_flag=True, help="Write --out as a shelf, episode by episode.")
@click.option("--track-progress", is_flag=True, help="Keep the progress in a file beside --out.")
@click.option("--render", is_flag=True, help="Show the environment.")
@click.option("--no-render", is_flag=True, hidden=True)
@click.option("--video-dir", "--video", type=options.LocalPath(), help="A video an episode.")
@click.option("--monitor", is_flag=True, help="--video-dir beside --out, in the folder monitor.")
@click.option("--local-mode", is_flag=True, hidden=True)
@click.option(
    "--policy-mapping-fn", metavar="MODULE:NAME", help="Which policy an agent has; it is imported."
)
@options.observation_space_option
@options.action_space_option
@options.trust_option
@options.json_option
@options.verbose_option
@options.strict_option
def command(
    checkpoint: str | Path,
    *,
    episodes: int | None,
    steps: int | None,
    best: bool,
    as_json: bool,
    verbose: int,
    strict: bool,
    **given: Any,
) -> int:
    """Plays a trained policy of any Ray, and prints its returns.

    CHECKPOINT is a file or folder of any Ray from 0.5 on, converted or not; nothing in it is
    executed. Algorithms that Ray has removed play, too. Ray is not started.

    \b
    Examples:
      rllib-compat evaluate ~/ray_results/PPO/PPO_CartPole-v0_0/checkpoint_10/checkpoint-10
      rllib-compat evaluate ~/ray_results/PPO/PPO_CartPole-v0_0 --best --episodes 20
      rllib-compat evaluate checkpoint_10 --run DQN --env CartPole-v1 --episodes 20 --no-explore
      rllib-compat evaluate checkpoint_10 --steps 1000 --out rollouts.pkl --save-info
    """
    for sentence in _flags(given):
        output.progress(sentence)
    if steps is None:
        steps = 0 if episodes else STEPS
    video = given["video_dir"] or (_monitor(given["out"]) if given["monitor"] else None)
    if best:
        from rllib_compat.formats.stores import source_path

        checkpoint = overview.find_best(source_path(checkpoint))
    with contextlib.redirect_stdout(sys.stderr):
        played, code = _evaluate(checkpoint, episodes or 0, steps, video, verbose, given)
    summary = _summary(played)
    if as_json:
        output.emit_json(summary)
    else:
        columns = ("episodes", "env steps", "reward", "std", "min", "max", "length")
        output.table(
            describe_place(checkpoint), columns, [[_shown(v) for v in list(summary.values())[:7]]]
        )
    return code if strict else 0


def _flags(given: dict[str, Any]) -> list[str]:
    """Sentences about flags that have no effect any more.

    Raises:
        UsageError: Flags contradict each other.
    """
    if given["no_render"] and (given["render"] or given["video_dir"] or given["monitor"]):
        raise click.UsageError(
            "--no-render contradicts the options that render: leave it, or them, out."
        )
    for name in ("use_shelve", "track_progress", "save_info"):
        if given[name] and not given["out"]:
            raise click.UsageError(f"--{name.replace('_', '-')} needs --out.")
    notes = []
    if given["no_render"]:
        notes.append("--no-render: nothing is rendered unless you pass --render.")
    if given["local_mode"]:
        notes.append("--local-mode: ignored; an evaluation always runs in one process.")
    if given["monitor"]:
        notes.append("--monitor: it is --video-dir since Ray 1.0.")
    return notes


def _monitor(out: Path | None) -> Path:
    return (out.parent if out else Path("~/ray_results").expanduser()) / "monitor"


def _evaluate(
    checkpoint: str | Path,
    episodes: int,
    steps: int,
    video: Path | None,
    verbose: int,
    given: dict[str, Any],
) -> tuple[list[Episode], int]:
    from rllib_compat.conversion.given import Given
    from rllib_compat.conversion.inspect import inspect
    from rllib_compat.trainer import rollouts

    overrides = dict(given["config"] or {})
    named_modules.find_modules(given["env"], given["policy_mapping_fn"], given["trust"])
    if given["policy_mapping_fn"]:
        overrides["multiagent"] = {
            **overrides.get("multiagent", {}),
            "policy_mapping_fn": options.imported(given["policy_mapping_fn"]),
        }
    known = Given(
        algorithm=given["run"],
        config_if_none=given["config"],
        env=options.imported(env) if ":" in (env := given["env"] or "") else env or None,
        observation_spaces=dict(given["observation_space"]),
        action_spaces=dict(given["action_space"]),
        trust=given["trust"],
        overrides=overrides,
    )
    render = "human" if given["render"] else "rgb_array" if video else None
    if video:
        import_optional("moviepy", extra="video", where="--video-dir")
    if render and find_spec("pygame") is None:  # else it can draw any environment
        rollouts.require_pygame(known.env or inspect(checkpoint, given=known).environment)
    played = []
    recorder = rollouts.Recorder(
        given["out"],
        shelf=given["use_shelve"],
        infos=given["save_info"],
        progress=given["track_progress"],
    )
    with rollouts.load_actor(checkpoint, known) as (actor, report), recorder:
        output.report(report, verbose=verbose)
        env = rollouts.make_env(actor, render_mode=render)
        for number, episode in enumerate(
            rollouts.roll_out(
                actor,
                env,
                episodes=episodes,
                steps=steps,
                explore=given["explore"],
                seed=given["seed"],
                keep=given["out"] is not None,
                render=render,
            )
        ):
            cut = "" if episode.done else " (cut by --steps)"
            output.progress(
                f"episode {number}: reward {episode.reward:g}, {episode.length} steps{cut}"
            )
            recorder.add(episode)
            if video:
                fps = int(env.metadata.get("render_fps") or 30)
                rollouts.write_video(episode.frames, video / f"episode-{number}.mp4", fps=fps)
            episode.steps, episode.frames = [], []
            played.append(episode)
        getattr(env, "close", lambda: None)()
    return played, report.exit_code


def _summary(played: list[Episode]) -> dict[str, Any]:
    """The result, over the episodes that have ended; else over the one that was cut."""
    whole = [episode for episode in played if episode.done] or played
    rewards = [episode.reward for episode in whole]
    return {
        "episodes": len(whole),
        "steps": sum(episode.length for episode in played),
        "reward_mean": statistics.fmean(rewards),
        "reward_std": statistics.pstdev(rewards),
        "reward_min": min(rewards),
        "reward_max": max(rewards),
        "length_mean": sum(episode.length for episode in whole) / len(whole),
        "rewards": rewards,
        "lengths": [episode.length for episode in whole],
        "agents": {
            str(agent): sum(e.rewards.get(agent, 0.0) for e in whole) / len(whole)
            for agent in dict.fromkeys(a for e in whole for a in e.rewards)
        },
    }


def _shown(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"
