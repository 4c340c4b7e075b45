"""A folder of one's own for the results of a trainer, by `logger_creator`."""

import os
import tempfile

import ray
from facts import record
from ray.rllib.agents.pg import PGTrainer
from ray.tune.logger import UnifiedLogger

root = tempfile.mkdtemp()


def creator(path, name):
    def logger_creator(config):
        folder = tempfile.mkdtemp(prefix=name, dir=path)
        return UnifiedLogger(config, folder, loggers=None)

    return logger_creator


ray.init()
trainer = PGTrainer(
    env="CartPole-v0",
    config={
        "num_workers": 0,
        "framework": "torch",
        "rollout_fragment_length": 20,
        "train_batch_size": 20,
    },
    logger_creator=creator(root, "mine_"),
)
for _ in range(2):
    trainer.train()
folder = trainer.logdir
saved = trainer.save()
with open(os.path.join(folder, "result.json")) as file:
    lines = file.readlines()
record(
    inside=folder.startswith(root + "/mine_"),
    files=[f for f in ("params.json", "progress.csv", "result.json") if f in os.listdir(folder)],
    lines=len(lines),
    saved=saved.startswith(root),
)
trainer.stop()
