"""Saved, restored in a new trainer, and trained on: iterations, steps, weights."""

import os
import tempfile

import numpy as np
import ray
from facts import record
from ray.rllib.agents import ppo

config = ppo.DEFAULT_CONFIG.copy()
config.update(
    num_workers=0,
    framework="torch",
    rollout_fragment_length=40,
    train_batch_size=40,
    sgd_minibatch_size=20,
    num_sgd_iter=1,
)
config["model"] = dict(config["model"], fcnet_hiddens=[8])
ray.init()
folder = tempfile.mkdtemp()
first = ppo.PPOTrainer(config=config, env="CartPole-v0")
for i in range(2):
    first.train()
path = first.save(folder)
weights = first.get_policy().get_weights()
first.stop()
second = ppo.PPOTrainer(config=config, env="CartPole-v0")
second.restore(path)
same = all(np.allclose(w, weights[n]) for n, w in second.get_policy().get_weights().items())
result = second.train()
record(
    exists=os.path.exists(path),
    inside=os.path.abspath(path).startswith(folder),
    same=same,
    iteration=result["training_iteration"],
    since=result["iterations_since_restore"],
    steps=result["timesteps_total"],
    kl=second.get_policy().kl_coeff > 0,
)
second.stop()
