"""Policies without a trainer play each other, and their steps are written for offline training."""

import glob
import os
import tempfile
from collections import defaultdict

import gym
import numpy as np
import ray
from facts import record
from ray.rllib.agents.ppo import DEFAULT_CONFIG, PPOTorchPolicy
from ray.rllib.models.preprocessors import get_preprocessor
from ray.rllib.offline.json_reader import JsonReader
from ray.rllib.offline.json_writer import JsonWriter
from ray.rllib.policy.sample_batch import MultiAgentBatch, SampleBatch
from ray.rllib.utils import merge_dicts

OBS = gym.spaces.Tuple((gym.spaces.Discrete(3), gym.spaces.Box(0, 9, (2,), np.float32)))
ACT = gym.spaces.Discrete(3)


class Poker:
    observation_space, action_space = OBS, ACT

    def reset(self):
        self.n = 0
        return {0: self.look()}

    def look(self):
        return (self.n % 3, np.full(2, self.n, np.float32))

    def step(self, action_dict):
        self.n += 1
        player = self.n % 2
        done = self.n == 6
        return (
            {player: self.look()},
            {player: 1.0 if done else 0.0},
            {player: done, "__all__": done},
            {player: {}},
        )


ray.init()
config = merge_dicts(
    DEFAULT_CONFIG, {"framework": "torch", "explore": False, "model": {"fcnet_hiddens": [8]}}
)
prep = get_preprocessor(OBS)(OBS)
flat = prep.observation_space
policies = [PPOTorchPolicy(flat, ACT, config) for _ in range(2)]
weights = policies[0].get_weights()
policies[1].set_weights(weights)
env = Poker()
columns = {i: defaultdict(list) for i in range(2)}
obs, dones = env.reset(), {"__all__": False}
states = [policy.get_initial_state() for policy in policies]
paid = np.zeros(2)
extras = set()
while not dones["__all__"]:
    actions = {}
    for player in obs:
        row = prep.transform(obs[player])
        action, states[player], info = policies[player].compute_single_action(
            obs=row, state=states[player]
        )
        extras.update(info)
        actions[player] = action
        columns[player][SampleBatch.CUR_OBS].append(row)
        columns[player][SampleBatch.ACTIONS].append(action)
    obs, rewards, dones, infos = env.step(action_dict=actions)
    for player, reward in rewards.items():
        paid[player] += reward
    for player in actions:
        columns[player][SampleBatch.REWARDS].append(rewards.get(player, 0.0))
        columns[player][SampleBatch.DONES].append(dones["__all__"])
folder = tempfile.mkdtemp()
writer = JsonWriter(folder)
batches = {
    str(k): SampleBatch({name: np.array(v) for name, v in c.items()}) for k, c in columns.items()
}
for batch in batches.values():
    writer.write(batch)
writer.write(MultiAgentBatch(batches, 6))
files = glob.glob(os.path.join(folder, "*"))
reader = JsonReader(files)
same = [np.array_equal(policies[0].get_weights()[k], policies[1].get_weights()[k]) for k in weights]
rows = np.stack([prep.transform(env.look())] * 4)
actions, state_outs, more = policies[0].compute_actions(rows)
record(
    extras=sorted(extras),
    more=sorted(more),
    actions=list(np.shape(actions)),
    outs=len(state_outs),
    paid=paid,
    steps=[b.count for b in batches.values()],
    shape=prep.shape,
    files=len(files),
    first=type(reader.next()).__name__,
    same=all(same),
    deterministic=bool(np.array_equal(actions, policies[1].compute_actions(rows)[0])),
    dist=policies[0].dist_class.__name__,
)
