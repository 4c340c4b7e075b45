"""Recordings made by hand with a builder of batches and a writer."""

import glob
import json
import tempfile

import gym
import numpy as np
from facts import record
from ray.rllib.evaluation.sample_batch_builder import SampleBatchBuilder
from ray.rllib.models.preprocessors import get_preprocessor
from ray.rllib.offline.json_reader import JsonReader
from ray.rllib.offline.json_writer import JsonWriter

folder = tempfile.mkdtemp()
env = gym.make("CartPole-v0")
env.seed(1)
flat = get_preprocessor(env.observation_space)(env.observation_space).transform
writer = JsonWriter(folder)
builder = SampleBatchBuilder()
total = 0
for episode in range(3):
    seen, over = env.reset(), False
    for step in range(6):
        before = flat(seen)
        seen, paid, over, told = env.step(step % 2)
        row = {"obs": before, "new_obs": flat(seen), "actions": step % 2, "rewards": paid}
        row.update(dones=over, infos=told, action_prob=1.0, eps_id=episode, t=step, agent_index=0)
        builder.add_values(**row)
        total += 1
        if over:
            break
    writer.write(builder.build_and_reset())
(file,) = glob.glob(folder + "/*.json")
rows = [json.loads(line) for line in open(file)]
batch = JsonReader(folder).next()
record(
    rows=len(rows),
    total=total,
    actions=batch["actions"],
    shape=np.shape(batch["obs"]),
    rewards=float(np.sum(batch["rewards"])),
    kind=rows[0]["type"],
)
