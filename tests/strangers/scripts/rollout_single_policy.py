"""Actions from a policy by hand: preprocessed, filtered, with and without exploration."""

import gym
import numpy as np
import ray
from facts import record
from ray.rllib.agents.pg import PGTrainer
from ray.rllib.models.catalog import ModelCatalog


class Lamp(gym.Env):
    def __init__(self, config=None):
        self.observation_space = gym.spaces.Discrete(4)
        self.action_space = gym.spaces.Box(-1, 1, (2,), np.float32)

    def reset(self):
        self.n = 0
        return self.n

    def step(self, action):
        self.n += 1
        return self.n, 1.0, self.n == 3, {}


ray.init()
trainer = PGTrainer(
    env=Lamp,
    config={
        "num_workers": 0,
        "framework": "torch",
        "rollout_fragment_length": 30,
        "train_batch_size": 30,
    },
)
trainer.train()
env = Lamp()
policy = trainer.get_policy()
prep = ModelCatalog.get_preprocessor(env)
flat = prep.transform(2)
single = policy.compute_single_action(flat, [], explore=False)
batch = policy.compute_actions(np.stack([flat, flat]), explore=False)
own = trainer.compute_action(2, explore=False)
record(
    flat=flat,
    shape=prep.shape,
    single=[len(single), np.shape(single[0])],
    batch=[np.shape(batch[0]), len(batch[1])],
    same=bool(np.allclose(single[0], batch[0][0], atol=1e-5)),
    own=np.shape(own),
    clipped=bool(np.abs(own).max() <= 1),
)
trainer.stop()
