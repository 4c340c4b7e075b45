"""A subclass of a trainer, given to Tune, that adds to results and saves more."""

import json
import os

import ray
from facts import record
from ray import tune
from ray.rllib.agents.pg import PGTrainer


class Noted(PGTrainer):
    def setup(self, config):
        super().setup(config)
        self.notes = []

    def step(self):
        result = super().step()
        self.notes.append(result["episodes_this_iter"])
        result["noted"] = len(self.notes)
        return result

    def save_checkpoint(self, checkpoint_dir):
        path = super().save_checkpoint(checkpoint_dir)
        with open(os.path.join(checkpoint_dir, "notes.json"), "w") as file:
            json.dump(self.notes, file)
        return path


ray.init()
analysis = tune.run(
    Noted,
    stop={"noted": 2},
    checkpoint_freq=1,
    verbose=0,
    config={
        "env": "CartPole-v0",
        "num_workers": 0,
        "framework": "torch",
        "rollout_fragment_length": 40,
        "train_batch_size": 40,
    },
)
(trial,) = analysis.trials
folders = [folder for folder, _, files in os.walk(trial.logdir) if "notes.json" in files]
record(
    noted=trial.last_result["noted"],
    folders=len(folders),
    lengths=sorted(len(json.load(open(os.path.join(f, "notes.json")))) for f in folders),
    steps=trial.last_result["timesteps_total"],
)
