"""Records what policies and models of an old Ray answer.

Usage: `python record.py OUT [CASE…]`, with the Python of an environment that has Ray 0.8.5, 1.0.1
or 1.13.0 and torch. It writes `OUT/<case>/`: a checkpoint, and `calls.json` with what each call
gave.
"""

import functools
import importlib
import os
import shutil
import sys
from pathlib import Path

os.environ["CUDA_VISIBLE_DEVICES"] = ""

import calls
import gym
import ray
import torch
from ray.rllib.policy.sample_batch import SampleBatch
from ray.tune.registry import register_env


def trainer_of(case):
    """A trainer of this Ray for a case."""
    algorithm, config = calls.config_of(case)
    config["framework"] = "torch"
    if ray.__version__ < "0.8.6":
        del config["framework"]
        config["use_pytorch"] = True
    module = "a3c" if algorithm == "A2C" else algorithm.lower()
    agents = importlib.import_module("ray.rllib.agents." + module)
    trainer = getattr(agents, algorithm + "Trainer")
    if "timesteps_per_iteration" in config and ray.__version__.startswith("1.13"):
        config["min_sample_timesteps_per_reporting"] = config.pop("timesteps_per_iteration")
        config["replay_buffer_config"] = {"capacity": config.pop("buffer_size")}
    return trainer(config={**config, "env": "small"})


def new_folder(place, name):
    """Makes a folder of a name."""
    made = place / name
    made.mkdir(parents=True, exist_ok=True)
    return str(made)


def without_folder(data, folder=sys.prefix):
    """A file that doesn't say where this Python is: pickled functions have the paths of theirs.

    The path in its place is as long, because pickles write the length of each text before it.
    """
    return data.replace(folder.encode(), b"/old/".ljust(len(folder.encode()), b"v"))


def main(out, names):
    """Records cases."""
    ray.init(num_cpus=2, include_dashboard=False) if ray.__version__ > "1" else ray.init(num_cpus=2)
    env = calls.make_env(gym)
    register_env("small", lambda context: env(context))
    for case in names or calls.CASES:
        folder = Path(out) / case
        try:
            trainer = trainer_of(case)
        except Exception as error:
            print(case, "can't be made:", type(error).__name__, error)
            continue
        for _ in range(2):
            trainer.train()
        folder.mkdir(parents=True, exist_ok=True)
        for file in folder.glob("*"):
            file.unlink()
        saved = Path(trainer.save(str(folder / "saved")))
        for file in saved.parent.iterdir():
            if file.name.startswith("checkpoint"):
                (folder / file.name).write_bytes(without_folder(file.read_bytes()))
        policy = trainer.get_policy()

        torch.manual_seed(0)
        found = calls.ask(policy, SampleBatch, functools.partial(new_folder, folder / "saved"))
        shutil.rmtree(str(folder / "saved"))
        (folder / "calls.json").write_text(calls.to_text(found))
        trainer.stop()
        print(case, len(found["calls"]))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
