"""Steps written as JSON by one trainer, read and learned from by another."""

import glob
import json
import tempfile

import ray
from facts import record
from ray.rllib.agents.marwil import MARWILTrainer
from ray.rllib.agents.pg import PGTrainer

folder = tempfile.mkdtemp()
ray.init()
writer = PGTrainer(
    env="CartPole-v0",
    config={
        "num_workers": 0,
        "framework": "torch",
        "output": folder,
        "batch_mode": "complete_episodes",
        "rollout_fragment_length": 50,
        "train_batch_size": 50,
    },
)
for _ in range(2):
    writer.train()
writer.stop()
files = glob.glob(folder + "/*.json")
rows = [json.loads(line) for line in open(files[0])]
reader = MARWILTrainer(
    env="CartPole-v0",
    config={
        "num_workers": 0,
        "framework": "torch",
        "input": folder,
        "input_evaluation": [],
        "beta": 0.0,
        "train_batch_size": 40,
        "learning_starts": 10,
        "rollout_fragment_length": 20,
    },
)
result = reader.train()
record(
    files=len(files),
    kinds=sorted({row["type"] for row in rows}),
    columns=[c for c in ("obs", "actions", "rewards", "dones", "eps_id") if c in rows[0]],
    enough=len(rows) >= 2,
    learned=sorted(result["info"]["learner"]),
)
reader.stop()
