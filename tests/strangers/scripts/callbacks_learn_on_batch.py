"""`on_learn_on_batch`: what a policy is about to learn, and numbers of one's own in the results."""

import gym
import numpy as np
import ray
from facts import record
from ray.rllib.agents.callbacks import DefaultCallbacks
from ray.rllib.agents.pg import PGTrainer

seen = []


class Sizes(DefaultCallbacks):
    def on_learn_on_batch(self, *, policy, train_batch, result, **kwargs):
        seen.append([len(train_batch["obs"]), float(np.sum(np.asarray(train_batch["rewards"])))])
        result["batch_sum"] = float(np.sum(np.asarray(train_batch["rewards"])))

    def on_sub_environment_created(self, *, worker, sub_environment, env_context, **kwargs):
        sub_environment.made_by = env_context.worker_index


class Drum(gym.Env):
    made_by = None

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
trainer = PGTrainer(
    env=Drum,
    config={
        "num_workers": 0,
        "framework": "torch",
        "callbacks": Sizes,
        "rollout_fragment_length": 25,
        "train_batch_size": 25,
    },
)
result = trainer.train()
record(seen=seen, told="batch_sum" in str(result["info"]["learner"]["default_policy"]))
trainer.stop()
