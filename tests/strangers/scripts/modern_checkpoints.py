"""`save`, `Algorithm.from_checkpoint` and `Policy.from_checkpoint` of 2.x."""

import os
import tempfile

import numpy as np
import ray
from facts import record
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.algorithms.dqn import DQNConfig

ray.init()
config = (
    DQNConfig()
    .environment("CartPole-v1")
    .framework("torch")
    .rollouts(num_rollout_workers=0, rollout_fragment_length=4)
    .training(
        train_batch_size=8,
        hiddens=[4],
        model={"fcnet_hiddens": [4]},
        num_steps_sampled_before_learning_starts=20,
    )
    .reporting(min_sample_timesteps_per_iteration=40)
)
agent = config.build()
told = agent.train()
folder = tempfile.mkdtemp()
saved = agent.save(folder)
path = saved.checkpoint.path
weights = agent.get_policy().get_weights()
agent.stop()
again = Algorithm.from_checkpoint(path)
same = all(np.allclose(w, weights[n]) for n, w in again.get_policy().get_weights().items())
later = again.train()
record(
    exists=os.path.exists(path),
    same=same,
    iterations=[told["training_iteration"], later["training_iteration"]],
    steps=[told["num_env_steps_sampled"], later["num_env_steps_sampled"]],
)
again.stop()
