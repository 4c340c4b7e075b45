"""What remote workers are asked: their index, environments, weights and policies."""

import gym
import numpy as np
import ray
from facts import record
from ray.rllib.agents.ppo import PPOTrainer


class Site(gym.Env):
    def __init__(self, config):
        self.name = "w%de%d" % (config.worker_index, config.vector_index)
        self.observation_space = gym.spaces.Box(0, 9, (1,), np.float32)
        self.action_space = gym.spaces.Discrete(2)

    def reset(self):
        self.n = 0
        return np.zeros(1, np.float32)

    def step(self, action):
        self.n += 1
        return np.ones(1, np.float32), 1.0, self.n == 5, {}


ray.init(num_cpus=4)
trainer = PPOTrainer(
    env=Site,
    config={
        "num_workers": 1,
        "num_envs_per_worker": 2,
        "framework": "torch",
        "rollout_fragment_length": 20,
        "train_batch_size": 40,
        "sgd_minibatch_size": 20,
        "num_sgd_iter": 1,
    },
)
result = trainer.train()
workers = trainer.workers.remote_workers()
names = ray.get([w.foreach_env.remote(lambda env: env.name) for w in workers])
indices = trainer.workers.foreach_worker_with_index(lambda w, i: (i, w.worker_index))
policies = trainer.workers.foreach_policy(lambda policy, pid: pid)
record(
    names=names,
    indices=[list(row) for row in indices],
    policies=policies,
    workers=len(workers),
    count=result["timesteps_total"],
    healthy=result.get("num_healthy_workers", 1),
)
trainer.stop()
