"""Weights from one trainer to another, and to a file."""

import os
import pickle
import tempfile

import numpy as np
import ray
from facts import record
from ray.rllib.agents.dqn import DQNTrainer

config = {
    "num_workers": 0,
    "framework": "torch",
    "env": "CartPole-v0",
    "hiddens": [4],
    "model": {"fcnet_hiddens": [4]},
    "learning_starts": 10,
    "buffer_size": 100,
    "timesteps_per_iteration": 20,
    "train_batch_size": 8,
}
ray.init()
first, second = DQNTrainer(config=config), DQNTrainer(config=config)
first.train()
weights = first.get_weights()
path = os.path.join(tempfile.mkdtemp(), "weights.pkl")
with open(path, "wb") as file:
    pickle.dump(weights, file)
with open(path, "rb") as file:
    second.set_weights(pickle.load(file))
ours, theirs = (t.get_policy().get_weights() for t in (first, second))
probe = np.array([0.1, 0.2, 0.3, 0.4])
record(
    policies=sorted(weights),
    equal=all(np.allclose(ours[name], theirs[name]) for name in ours),
    same_action=first.compute_action(probe, explore=False)
    == second.compute_action(probe, explore=False),
)
first.stop()
second.stop()
