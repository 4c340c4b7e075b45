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
builder, writer = SampleBatchBuilder(), JsonWriter(folder)
env = gym.make("CartPole-v0")
prep = get_preprocessor(env.observation_space)(env.observation_space)
env.seed(1)
total = 0
for episode in range(3):
    obs, done, t = env.reset(), False, 0
    while not done and t < 6:
        action = t % 2
        new_obs, reward, done, info = env.step(action)
        builder.add_values(
            t=t,
            eps_id=episode,
            agent_index=0,
            obs=prep.transform(obs),
            actions=action,
            action_prob=1.0,
            rewards=reward,
            dones=done,
            infos=info,
            new_obs=prep.transform(new_obs),
        )
        obs, t, total = new_obs, t + 1, total + 1
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
