"""What large or greedy files of each kind cost, in a process each.

    python -m tests.security.large

prints a row a case: seconds of the processor, megabytes above what the process had, and what came
of it. A case is a few kilobytes that name a size, or a file with far more of something than people
have; the last are what people do have, and must be taken.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import pickle
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.legacy.cases import MUSEUM
from tests.security import payloads

Work = Callable[[], object]


def _model_of(case: str, **model: Any) -> Callable[[Path], Work]:
    """A museum file whose config names other sizes."""

    def make(folder: Path) -> Work:
        from rllib_compat import Given, convert, inspect

        old = folder / "old"
        shutil.copytree(MUSEUM / case, old)
        config: dict[str, Any] = {}
        for file in sorted(old.rglob("params.json")):
            config = json.loads(file.read_text())
        given = Given(config={**config, "model": {**config.get("model", {}), **model}})
        found = next(p for p in sorted(old.rglob("*")) if p.name.startswith("checkpoint"))

        def work() -> None:
            inspect(found, given=given)
            convert(found, folder / "new", to="msgpack", given=given)

        return work

    return make


def _policies(count: int, *, known: bool) -> Callable[[Path], Work]:
    """Small policies, of a network that RLlib made or of one that nobody knows."""

    def make(folder: Path) -> Work:
        from rllib_compat import convert, inspect

        folder.mkdir(exist_ok=True)
        arrays = {
            layer: np.zeros(shape, np.float32)
            for layer, shape in {
                "fc_1/kernel": (4, 8), "fc_1/bias": (8,), "fc_out/kernel": (8, 2),
                "fc_out/bias": (2,), "fc_value_1/kernel": (4, 8), "fc_value_1/bias": (8,),
                "value_out/kernel": (8, 1), "value_out/bias": (1,),
            }.items()
        }  # fmt: skip
        states = {
            f"p{i}": {f"p{i}/{n if known else n[::-1]}": a for n, a in arrays.items()}
            for i in range(count)
        }
        inner = pickle.dumps({"state": states, "filters": {}}, 4)
        (folder / "checkpoint-1").write_bytes(pickle.dumps({"worker": inner}, 4))
        spaces = "Box(-1.0, 1.0, (4,), float32)", "Discrete(2)"
        policies = {policy: [None, *spaces, {}] for policy in states}
        params = {"env": "x", "model": {"fcnet_hiddens": [8]}, "multiagent": {"policies": policies}}
        (folder / "params.json").write_text(json.dumps(params))

        def work() -> None:
            inspect(folder)
            convert(folder, folder.with_name("new"), to="msgpack", algorithm="PPO")

        return work

    return make


def _unknown_keys(folder: Path) -> Work:
    from rllib_compat import inspect, translate

    config = {f"odd_{i}_key": i for i in range(5000)}
    path = payloads.v0_1(folder / "old", params={"env": "CartPole-v0", **config})
    return lambda: (inspect(path), translate(config, algorithm="PPO", on_unknown="pass"))


def _plot(count: int) -> Callable[[Path], Work]:
    def make(folder: Path) -> Work:
        from rllib_compat.cli import main

        folder.mkdir()
        rows = (
            {"training_iteration": i, "timesteps_total": i, "time_total_s": i}
            | {f"episode_reward_{part}": i % 7 for part in ("mean", "min", "max")}
            for i in range(1, count + 1)
        )
        (folder / "result.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
        return lambda: main(["plot", str(folder), "--out", str(folder / "p.png")])

    return make


def _find(folder: Path) -> Work:
    from rllib_compat.conversion.convert_many import find_jobs

    for number in range(3000):
        payloads.v0_1(folder / "old" / f"{number}")
    return lambda: find_jobs(folder / "old", folder / "out")


def _upgrade(lines: int) -> Callable[[Path], Work]:
    def make(folder: Path) -> Work:
        from rllib_compat.cli import main

        folder.mkdir()
        part = (
            "from ray.rllib.agents.ppo import PPOTrainer\n"
            "config = {'num_workers': 2, 'lr': 1e-4}\n"
            "def train(n):\n    trainer = PPOTrainer(config=config, env='CartPole-v0')\n"
            "    for i in range(n):\n        print(trainer.train()['episode_reward_mean'])\n\n\n"
            "class A:\n    def b(self, c, d=3):\n        return [c + x for x in range(d)]\n\n\n"
        )
        (folder / "x.py").write_text(part * (lines // part.count("\n")))
        return lambda: main(["upgrade", str(folder), "--check"])

    return make


CASES: dict[str, Callable[[Path], Work]] = {
    "ES, layers of 16,000": _model_of("1.13.0/es-torch-meanstd", fcnet_hiddens=[16000, 16000]),
    "attention, a memory of 10,000": _model_of(
        "1.13.0/ppo-torch-attention", attention_memory_inference=10_000
    ),
    "5,000 unknown keys": _unknown_keys,
    "1,000 policies of unknown networks": _policies(1000, known=False),
    "plot of 20,000 iterations": _plot(20_000),
    "plot of 100,000 iterations": _plot(100_000),
    "3,000 checkpoints to find": _find,
    "upgrade of 1,000 lines": _upgrade(1000),
    "500 small policies to msgpack": _policies(500, known=True),
}


def cost(case: str) -> dict[str, Any]:
    """What a case takes in a process of its own.

    Returns:
        Seconds, bytes of memory above what the process had, and what came of it.
    """
    with tempfile.TemporaryDirectory() as name:
        work = CASES[case](Path(name) / "x")
        read_end, write_end = os.pipe()
        child = os.fork()
        if not child:
            os.close(read_end)
            start, before = time.process_time(), _peak()
            told = _outcome(work)
            row = {"seconds": time.process_time() - start, "memory": _peak() - before}
            os.write(write_end, json.dumps({**row, "outcome": told}).encode())
            os._exit(0)
        os.close(write_end)
        with os.fdopen(read_end) as pipe:
            row = json.loads(pipe.read() or '{"seconds": 0, "memory": 0, "outcome": "died"}')
        os.waitpid(child, 0)
    return row


def _outcome(work: Work) -> str:
    from rllib_compat.errors import CompatError

    try:
        with contextlib.redirect_stdout(io.StringIO()):
            work()
    except CompatError as error:
        return f"{type(error).__name__}: {error.found}"[:150]
    except SystemExit as error:
        return f"exit {error.code}"
    return "taken"


def _peak() -> int:
    from tests.fuzz.run import peak

    return peak()


def main() -> None:
    """Prints a row a case."""
    for case in sys.argv[1:] or CASES:
        row = cost(case)
        print(
            f"{case:36} {row['seconds']:6.2f} s {row['memory'] / 1e6:7.1f} MB  {row['outcome']}",
            flush=True,
        )


if __name__ == "__main__":
    main()
