"""`rllib-compat demo`: the whole way, on a real checkpoint that comes with the package."""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import replace
from importlib import resources
from pathlib import Path

import click

from rllib_compat import formats
from rllib_compat.cli import options, output


@click.command("demo")
@click.option(
    "--keep",
    type=options.LocalPath(),
    help="Keep the converted checkpoint here. [default: a temporary folder, deleted]",
)
@click.option(
    "--old",
    type=options.LocalPath(),
    help="Copy the old checkpoint to this new folder, for trying the other commands, and stop.",
)
@options.verbose_option
def command(keep: Path | None, old: Path | None, verbose: int) -> int:
    """Converts and trains a checkpoint that Ray 0.8.5 wrote (PPO, TensorFlow 1, CartPole).

    The new module is also compared with the outputs that Ray 0.8.5 itself computed for 16
    observations: they prove what the weights do not show, the activation for one.

    \b
    Examples:
      rllib-compat demo
      rllib-compat demo --keep new
      rllib-compat demo --old old && rllib-compat inspect old
    """
    with resources.as_file(resources.files("rllib_compat") / "demo_data") as data:
        if old is not None:
            with formats.atomic_directory(old) as folder:
                shutil.copytree(data, folder, dirs_exist_ok=True)
            output.say(f"{old}: a checkpoint of Ray 0.8.5 (PPO, TensorFlow 1, CartPole-v0)")
            return 0
        return _convert_and_train(data, keep, verbose)


def _convert_and_train(old: Path, keep: Path | None, verbose: int) -> int:
    from rllib_compat import convert
    from rllib_compat.cli.convert import show

    with tempfile.TemporaryDirectory(prefix="rllib-compat-") as temporary:
        target = keep or Path(temporary) / "new"
        output.progress("converting a checkpoint of Ray 0.8.5 (PPO, TensorFlow 1, CartPole-v0)")
        done = convert(old, target, algorithm="PPO", recorded=old / "expected.npz")
        show(done if keep else replace(done, next_step=""), verbose)  # it is removed below
        _train_on(target)
        if keep is None:
            shutil.rmtree(target)
    return 0


def _train_on(new: Path) -> None:
    """Loads the new checkpoint as any Ray user would, and trains one iteration."""
    from rllib_compat.ray_versions import algorithms, releases, startup

    # Ray's C++ core warns on stderr of what only Ray's own developers can use.
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    output.progress("loading it with Algorithm.from_checkpoint and training one iteration")
    with startup.quiet_ray(num_cpus=2, job_config=startup.job_without_working_directory()):
        algorithm = algorithms.load_algorithm(new)
        before = algorithm.training_iteration
        result = algorithm.train()
        algorithm.stop()
    output.say(
        f"loaded at iteration {before}, trained iteration {result['training_iteration']} on Ray "
        f"{releases.installed()}: mean return "
        f"{result['env_runners']['episode_return_mean']:.1f}"
    )
