"""Schedules of the learning rate and the entropy coefficient, as they are told in results."""

import gym
import numpy as np
import ray
from facts import record
from ray.rllib.agents.a3c import A2CTrainer
from ray.rllib.agents.ppo import PPOTrainer


class Drum(gym.Env):
    def __init__(self, config):
        self.observation_space = gym.spaces.Box(0, 9, (1,), np.float32)
        self.action_space = gym.spaces.Discrete(2)

    def reset(self):
        self.n = 0
        return np.zeros(1, np.float32)

    def step(self, action):
        self.n += 1
        return np.ones(1, np.float32), 1.0, self.n == 5, {}


ray.init()
common = {
    "num_workers": 0,
    "framework": "torch",
    "rollout_fragment_length": 50,
    "train_batch_size": 50,
    "lr_schedule": [[0, 0.01], [100, 0.001], [1000, 0.001]],
    "entropy_coeff_schedule": [[0, 0.1], [100, 0.0]],
}
found = {}
for name, cls, more in (
    ("ppo", PPOTrainer, {"sgd_minibatch_size": 25, "num_sgd_iter": 1}),
    ("a2c", A2CTrainer, {"min_iter_time_s": 0}),
):
    trainer = cls(env=Drum, config=dict(common, **more))
    rates = []
    for _ in range(4):
        stats = trainer.train()["info"]["learner"]["default_policy"]
        stats = stats.get("learner_stats", stats)
        rates.append(float(stats["cur_lr"]))
    found[name] = [rates[0], rates[-1]]
    trainer.stop()
record(**found)
