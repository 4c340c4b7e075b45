"""Kills saves and restores of a trainer, and breaks restores off, at random moments.

`python -m tests.trainer_kills 200` does each 200 times, with one Ray. A process that is forked off
saves one of two states into the same folder, and is killed meanwhile; what lies there must restore
as one of the two, whole. One that restores and is killed must leave both checkpoints as they were,
so that another process has them whole. A restore is also broken off by an exception; the trainer
must then have the state from before, or that of the checkpoint.
"""

from __future__ import annotations

import contextlib
import copy
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import ray
import tree

import rllib_compat as compat
from rllib_compat.ray_versions import learners
from rllib_compat.runtime.observation_connectors import SEEN
from rllib_compat.trainer.checkpoints import save_whole
from tests.trees import digest_tree

CONFIG = {
    "env": "CartPole-v0",
    "num_workers": 0,
    "train_batch_size": 50,
    "sgd_minibatch_size": 50,
    "num_sgd_iter": 1,
    "rollout_fragment_length": 50,
    "observation_filter": "MeanStdFilter",
    "model": {"fcnet_hiddens": [8]},
}


class Break(BaseException):
    """What breaks a restore off."""


def kill_saves(trainer: Any, kills: int, folder: Path) -> Counter[str]:
    """Kills so many saves; returns what was there afterwards, and what a restore made of it."""
    states, found, chance = _two_states(trainer, folder), Counter(), random.Random(0)
    target, longest = folder / "work" / "checkpoint_000001", 0.3
    for number in range(20 * kills):
        if found["killed"] == kills:
            break
        trainer.restore(str(folder / str(number % 2)))
        child = os.fork()
        if child == 0:
            with contextlib.suppress(BaseException):
                save_whole(target, trainer.save_checkpoint)
            os._exit(0)
        time.sleep(chance.uniform(0, longest))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        killed = os.WIFSIGNALED(status)
        found["killed" if killed else "was faster"] += 1
        longest = longest * (1.1 if killed else 0.9)
        if not target.exists():
            found["nothing was there yet"] += killed
            continue
        trainer.restore(str(target))
        found["one of the two"] += state_of(trainer) in states
        found["half"] += state_of(trainer) not in states
    save_whole(target, trainer.save_checkpoint)
    found["left beside it"] = len(list(target.parent.iterdir())) - 1
    return found


def kill_restores(trainer: Any, kills: int, folder: Path) -> Counter[str]:
    """Kills so many restores; returns what the next one, of another process, made of the folder."""
    states, found, chance = _two_states(trainer, folder), Counter(), random.Random(0)
    before, longest = digest_tree(folder), 0.3
    for number in range(20 * kills):
        if found["killed"] == kills:
            break
        child = os.fork()
        if child == 0:
            ray.put = _stay  # two processes can't speak to Ray by one connection
            with contextlib.suppress(BaseException):
                trainer.restore(str(folder / str(number % 2)))
            os._exit(0)
        time.sleep(chance.uniform(0, longest))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        killed = os.WIFSIGNALED(status)
        found["killed" if killed else "was faster"] += 1
        longest *= 1.1 if killed else 0.9
        if killed:
            found["files changed"] += digest_tree(folder) != before
            trainer.restore(str(folder / str(number % 2)))
            found["whole" if state_of(trainer) == states[number % 2] else "half"] += 1
    return found


def break_restores(trainer: Any, breaks: int, folder: Path) -> Counter[str]:
    """Breaks so many restores off; returns which state the trainer had afterwards."""
    states, found, chance = _two_states(trainer, folder), Counter(), random.Random(0)
    before, longest = digest_tree(folder), 0.3
    old = signal.signal(signal.SIGALRM, _break_off)
    for number in range(5 * breaks):
        if found["broken off"] == breaks:
            break
        own = state_of(trainer)
        started = time.monotonic()
        try:
            signal.setitimer(signal.ITIMER_REAL, chance.uniform(0.0001, longest))
            trainer.restore(str(folder / str(number % 2)))
            signal.setitimer(signal.ITIMER_REAL, 0)
            longest = time.monotonic() - started
        except (Break, Exception):  # pickle turns what is raised in it into errors of its own
            signal.setitimer(signal.ITIMER_REAL, 0)
            found["broken off"] += 1
            now = state_of(trainer)
            kind = "as before" if now == own else "restored" if now in states else "half"
            found[kind] += 1
    signal.signal(signal.SIGALRM, old)
    found["files changed"] = int(digest_tree(folder) != before)
    return found


def state_of(trainer: Any) -> list[Any]:
    """All that training goes on from, to be compared; a copy."""
    learner = learners.local_learner(trainer.algorithm).get_state()
    runner = trainer.algorithm.env_runner.get_state(not_components="rl_module")
    kept = {"module": learner["rl_module"], "optimizer": learner["optimizer"]}
    kept["filter"] = runner["env_to_module_connector"]["MeanStdFilter"]
    kept["acts"] = trainer.algorithm.env_runner.module.get_state()
    rows = tree.flatten_with_path(copy.deepcopy(kept))
    # What its own env runner has seen is no part of what it goes on from.
    rows = [(path, np.asarray(value)) for path, value in rows if SEEN not in path]
    steps = trainer.algorithm.metrics.peek(("env_runners", "num_env_steps_sampled_lifetime"))
    numbers = [(path, value.dtype.str, value.tobytes()) for path, value in rows]
    return [*numbers, trainer.algorithm.iteration, steps]


def _stay(value: object, **_: object) -> object:
    return value


def _two_states(trainer: Any, folder: Path) -> list[Any]:
    """Saves two states; what a trainer has that has restored them."""
    states = []
    for number in range(2):
        trainer.train()
        Path(trainer.save(str(folder))).rename(folder / str(number))
        trainer.restore(str(folder / str(number)))
        states.append(state_of(trainer))
    return states


def _break_off(*_: object) -> None:
    raise Break


@contextlib.contextmanager
def _trainer() -> Iterator[Any]:
    trainer = compat.PPOTrainer(config=CONFIG)
    yield trainer
    trainer.stop()


def main() -> None:
    """Prints what so many of each have shown."""
    for what in (kill_saves, kill_restores, break_restores):
        with tempfile.TemporaryDirectory() as folder, _trainer() as trainer:
            started = time.monotonic()
            print(what.__name__, dict(what(trainer, int(sys.argv[1]), Path(folder))), flush=True)
            print(f"{time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
