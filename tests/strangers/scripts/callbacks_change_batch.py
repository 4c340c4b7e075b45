"""Rewards changed after an episode, in `on_postprocess_trajectory`, and what is learned of them."""

import gym
import numpy as np
import ray
from facts import record
from ray.rllib.agents.a3c import A2CTrainer
from ray.rllib.agents.callbacks import DefaultCallbacks

sums = []


class Flat(gym.Env):
    def __init__(self, config):
        self.observation_space = gym.spaces.Box(0, 1, (1,), np.float32)
        self.action_space = gym.spaces.Discrete(2)

    def reset(self):
        self.n = 0
        return np.zeros(1, np.float32)

    def step(self, action):
        self.n += 1
        return np.zeros(1, np.float32), 1.0, self.n == 5, {}


class Shaped(DefaultCallbacks):
    def on_postprocess_trajectory(self, *, postprocessed_batch, **kwargs):
        postprocessed_batch["rewards"] = postprocessed_batch["rewards"] * 10

    def on_sample_end(self, *, worker, samples, **kwargs):
        sums.append(float(samples["rewards"].sum()))


ray.init()
trainer = A2CTrainer(
    env=Flat,
    config={
        "num_workers": 0,
        "framework": "torch",
        "callbacks": Shaped,
        "rollout_fragment_length": 20,
        "train_batch_size": 20,
        "min_iter_time_s": 0,
    },
)
result = trainer.train()
record(first=sums[0], reward=result["episode_reward_mean"])
trainer.stop()
