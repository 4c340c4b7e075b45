"""Records what policies of an old Ray learn: weights before and after, batch and statistics.

Usage: `python record_learning.py OUT [CASE…]`, with the Python of an environment that has Ray
0.8.5, 1.0.1 or 1.13.0 and torch. It writes `OUT/<case>/`: `before` and `after` with a checkpoint
each, `batch.npz`, and `told.json`: the statistics of each step, and how far `compute_gradients` and
`apply_gradients` lead from there.
"""

import json
import shutil
import sys
from pathlib import Path

import calls
import gym
import learning
import numpy as np
import ray
import record
import torch
from ray.rllib.policy.sample_batch import SampleBatch
from ray.tune.registry import register_env


def save(trainer, folder):
    """Keeps a checkpoint without the path of this Python, and without Tune's file."""
    saved = Path(trainer.save(str(folder.parent / "saved" / folder.name)))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / saved.name).write_bytes(record.without_folder(saved.read_bytes()))


def start(policy, weights):
    """Gives a new policy weights; its targets begin with the same ones."""
    policy.set_weights(weights)
    update = getattr(policy, "update_target", None)
    if update is not None:
        update(**({"tau": 1.0} if "tau" in policy.config else {}))


def record_case(case, folder):
    """Records one case."""
    trainer = record.trainer_of(case)
    policy = trainer.get_policy()
    weights = {name: np.array(array) for name, array in policy.get_weights().items()}
    start(policy, weights)
    save(trainer, folder / "before")
    columns = calls.sequences(
        policy.postprocess_trajectory(calls.trajectory(policy, SampleBatch)), SampleBatch
    )
    columns = {name: np.asarray(column) for name, column in columns.items()}
    np.savez_compressed(str(folder / "batch.npz"), **columns)

    def make_batch():
        return of_columns(columns, SampleBatch)

    with learning.draws(torch):
        told = learning.learn(policy, make_batch)
    learned = {name: np.array(array) for name, array in policy.get_weights().items()}
    save(trainer, folder / "after")
    trainer.stop()
    again = record.trainer_of(case)
    start(again.get_policy(), weights)
    try:
        with learning.draws(torch):
            learning.learn_by_gradients(again.get_policy(), make_batch)
        found = again.get_policy().get_weights()
        apart = max(float(np.abs(found[name] - array).max()) for name, array in learned.items())
    except AssertionError:  # SAC of all these Rays refuses its own gradients
        apart = None
    again.stop()
    told = {"steps": told, "by_gradients_apart": apart}
    (folder / "told.json").write_text(json.dumps(told, indent=1, sort_keys=True) + "\n")
    shutil.rmtree(str(folder / "saved"))


def of_columns(columns, sample_batch):
    """A batch of arrays; with sequences, as its Ray wants them."""
    other = [n for n in columns if n == "seq_lens" or n.startswith("state_in_")]
    recurrent = "seq_lens" in columns
    made = sample_batch(
        {n: c.copy() for n, c in columns.items() if not recurrent or n not in other}
    )
    if recurrent:
        for name in other:  # they have a row for each sequence
            made[name] = columns[name].copy()
        made.seq_lens = made["seq_lens"]
        made.zero_padded = True
    return made


def main(out, names):
    """Records cases."""
    ray.init(num_cpus=2, include_dashboard=False) if ray.__version__ > "1" else ray.init(num_cpus=2)
    env = calls.make_env(gym)
    register_env("small", lambda context: env(context))
    for case in names or learning.CASES:
        folder = Path(out) / case
        folder.mkdir(parents=True, exist_ok=True)
        try:
            record_case(case, folder)
        except Exception as error:
            print(case, "can't be recorded:", type(error).__name__, error)
        print(case, sorted(file.name for file in folder.iterdir()), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
