"""`rllib-compat convert --to msgpack` of a checkpoint of gigabytes against `cp` and fsync.

Such a checkpoint costs what its bytes cost: it should take no more than twice the time of a copy,
and hold no more than half again its size in memory. The proof is left out (`--no-verify`), since
a thousand inputs through gigabytes of weights are what a proof costs, whatever is written.
The checkpoint is of Ray 1.13's form, made here, with a policy for each hundred megabytes.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROWS, COLUMNS = 5000, 5000


def make(folder: Path, gigabytes: float) -> Path:
    """Writes a trial's folder; returns its checkpoint."""
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((ROWS, COLUMNS), np.float32)
    state = {}
    for number in range(max(1, round(gigabytes * 1e9 / noise.nbytes))):
        layer, last = "_hidden_layers.0._model.0", "_logits._model.0"
        arrays = {
            f"{layer}.weight": noise + np.float32(number),
            f"{layer}.bias": np.zeros(ROWS, np.float32),
            f"{last}.weight": noise[:4].copy(),
            f"{last}.bias": np.zeros(4, np.float32),
            "_value_branch._model.0.weight": noise[:1].copy(),
            "_value_branch._model.0.bias": np.zeros(1, np.float32),
        }
        state[f"policy_{number}"] = {"weights": arrays}
    spec = [None, f"Box(-1.0, 1.0, ({COLUMNS},), float32)", "Discrete(4)", {}]
    config = {
        "env": "large",
        "model": {"fcnet_hiddens": [ROWS], "vf_share_layers": True},
        "multiagent": {"policies": dict.fromkeys(state, spec)},
    }
    worker = pickle.dumps({"state": state, "filters": {}}, protocol=4)
    checkpoint = folder / "PPO_large_0/checkpoint_000001"
    checkpoint.mkdir(parents=True)
    with (checkpoint / "checkpoint-1").open("wb") as file:
        pickle.dump({"worker": worker, "train_exec_impl": {"counters": {}}}, file, protocol=4)
    (checkpoint.parent / "params.json").write_text(json.dumps(config))
    return checkpoint


def refresh(source: Path, target: Path) -> None:
    """Leaves memory of the size behind that was in use a moment ago.

    A virtual machine's host may take back what lies idle for seconds, and a first touch of it then
    costs several times the copy: whoever runs second would pay for it, and so does whoever starts
    later. Where the kernel reports free pages, turn that off for the measurement
    (`/sys/module/page_reporting/parameters/page_reporting_order`): 1.7 became 4.3 with it.
    """
    shutil.copyfile(source, target)
    target.unlink()


def seconds_of_copy(source: Path, target: Path) -> float:
    """How long `cp` and fsync take."""
    start = time.perf_counter()
    shutil.copyfile(source, target)
    with target.open("rb+") as file:
        os.fsync(file.fileno())
    return time.perf_counter() - start


def seconds_and_memory(command: list[str]) -> tuple[float, int]:
    """How long a command takes, and how many bytes it holds at most."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    took = time.perf_counter() - start
    if os.waitstatus_to_exitcode(status) not in (0, 1):
        sys.exit(f"failed: {' '.join(command)}")
    return took, usage.ru_maxrss * 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gigabytes", type=float, default=3.0)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where there is room for three times that")
    options = parser.parse_args()
    cli = shutil.which("rllib-compat", path=Path(sys.executable).parent)
    command = [cli] if cli else [sys.executable, "-m", "rllib_compat"]
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        # In a process of its own: what a parent holds is counted as its children's.
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            old = pool.apply(make, (Path(name), options.gigabytes))
        source, copy, new = old / "checkpoint-1", Path(name, "copy"), Path(name, "new")
        size = source.stat().st_size
        ratios, memory = [], 0
        for _ in range(options.repetitions):
            refresh(source, copy)
            copied = seconds_of_copy(source, copy)
            copy.unlink()
            refresh(source, copy)
            convert = [*command, "convert", str(old), str(new), "--to", "msgpack", "--no-verify"]
            took, held = seconds_and_memory(convert)
            memory = max(memory, held)
            shutil.rmtree(new)
            ratios.append(took / copied)
            print(
                f"  cp and fsync {copied:6.2f} s   convert {took:6.2f} s   ratio {ratios[-1]:.2f}"
            )
        print(f"  ratio: {sorted(ratios)[len(ratios) // 2]:.2f} (median; 2 is allowed)")
        print(f"  memory: {memory / size:.2f} times the {size / 1e9:.1f} GB (1.5 is allowed)")


if __name__ == "__main__":
    main()
