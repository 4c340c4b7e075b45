"""Portfolios: a simplex of actions, and observations of any number of orders."""

import gym
import numpy as np
import ray
from facts import record
from ray.rllib.agents.ppo import PPOTrainer
from ray.rllib.utils.spaces.simplex import Simplex


class Portfolio(gym.Env):
    def __init__(self, config):
        self.seen = []
        self.action_space = Simplex(shape=(3,))
        self.observation_space = gym.spaces.Box(-10, 10, (4,), np.float64)

    def reset(self):
        self.n = 0
        return np.zeros(4)

    def step(self, action):
        self.n += 1
        self.seen.append(
            [
                np.shape(action),
                round(float(np.sum(action)), 3),
                bool(np.all(np.asarray(action) >= 0)),
            ]
        )
        return np.full(4, self.n / 10.0), float(action[0] >= 0), self.n == 5, {}


ray.init()
trainer = PPOTrainer(
    env=Portfolio,
    config={
        "num_workers": 0,
        "train_batch_size": 40,
        "rollout_fragment_length": 20,
        "sgd_minibatch_size": 20,
        "num_sgd_iter": 1,
        "model": {"fcnet_hiddens": [8]},
    },
)
result = trainer.train()
action = trainer.compute_action(np.zeros(4), explore=False)
seen = trainer.workers.local_worker().env.seen
record(
    seen=seen[0],
    all=all(s == seen[0] for s in seen),
    action=np.shape(action),
    sum=round(float(np.sum(action)), 3),
    dist=trainer.get_policy().dist_class.__name__.replace("Torch", ""),
    reward=result["episode_reward_mean"],
    sample=round(float(np.sum(Simplex(shape=(3,)).sample())), 3),
    contains=Simplex(shape=(3,)).contains(np.array([0.2, 0.3, 0.5])),
)
trainer.stop()
