"""Converting a league of many policies against converting one of two policies.

What a policy costs must not grow with the number of the others: with Ray's own copying of configs,
300 policies took minutes. The leagues are checkpoints of Ray 1.13's form, made here.
"""

from __future__ import annotations

import argparse
import itertools
import json
import pickle
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
from pairs import Contender, compare

SIZES = (6, 10, 8)
ACTIONS = 5


def policy(rng: np.random.Generator) -> dict[str, object]:
    """The state of a PPO policy of torch with own value layers."""
    arrays = {}
    for branch in ("_hidden_layers", "_value_branch_separate"):
        for number, (ins, outs) in enumerate(itertools.pairwise(SIZES)):
            layer = f"{branch}.{number}._model.0"
            arrays[f"{layer}.weight"] = rng.normal(0, 0.1, (outs, ins)).astype(np.float32)
            arrays[f"{layer}.bias"] = np.zeros(outs, np.float32)
    for head, outs in (("_logits", ACTIONS), ("_value_branch", 1)):
        arrays[f"{head}._model.0.weight"] = rng.normal(0, 0.1, (outs, SIZES[-1])).astype("f4")
        arrays[f"{head}._model.0.bias"] = np.zeros(outs, np.float32)
    return {"weights": arrays, "global_timestep": 400, "current_kl_coeff": 0.2}


def make(folder: Path, policies: int) -> Path:
    """Writes a trial's folder; returns its checkpoint."""
    rng = np.random.default_rng(0)
    names = [f"player_{number}" for number in range(policies)]
    worker = {"state": {name: policy(rng) for name in names}, "filters": {}}
    checkpoint = folder / "PPO_league_0/checkpoint_000002"
    checkpoint.mkdir(parents=True)
    content = {"worker": pickle.dumps(worker), "train_exec_impl": {"counters": {}}}
    (checkpoint / "checkpoint-2").write_bytes(pickle.dumps(content))
    spec = [None, "Box(-1.0, 1.0, (6,), float32)", f"Discrete({ACTIONS})", {}]
    config = {
        "env": "league",
        "model": {"fcnet_hiddens": list(SIZES[1:])},
        "multiagent": {"policies": dict.fromkeys(names, spec), "policies_to_train": names[:1]},
    }
    (checkpoint.parent / "params.json").write_text(json.dumps(config))
    return checkpoint


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--policies", type=int, default=300)
    options = parser.parse_args()
    cli = shutil.which("rllib-compat", path=Path(sys.executable).parent)
    command = [cli] if cli else [sys.executable, "-m", "rllib_compat"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        contenders = []
        for count in (options.policies, 2):
            old, new = make(folder / str(count), count), folder / f"new-{count}"
            convert = [*command, "convert", str(old), str(new), "--overwrite"]
            contenders.append(Contender(f"{count} policies", convert))
        compare(*contenders, repetitions=options.repetitions)


if __name__ == "__main__":
    main()
