"""A preprocessor of one's own."""

import gym
import numpy as np
import ray
from facts import record
from ray.rllib.agents.ppo import PPOTrainer
from ray.rllib.models import ModelCatalog
from ray.rllib.models.preprocessors import Preprocessor


class Tail(Preprocessor):
    def _init_shape(self, obs_space, options):
        return (options["custom_options"]["keep"] if "custom_options" in options else 2,)

    def transform(self, observation):
        return np.asarray(observation[-2:], np.float32) / 10


class Meter(gym.Env):
    def __init__(self, config):
        self.observation_space = gym.spaces.Box(0, 10, (5,), np.float32)
        self.action_space = gym.spaces.Discrete(2)

    def reset(self):
        self.n = 0
        return np.arange(5, dtype=np.float32)

    def step(self, action):
        self.n += 1
        return np.arange(5, dtype=np.float32), 1.0, self.n == 5, {}


ModelCatalog.register_custom_preprocessor("tail", Tail)
ray.init()
trainer = PPOTrainer(
    env=Meter,
    config={
        "num_workers": 0,
        "framework": "torch",
        "rollout_fragment_length": 20,
        "train_batch_size": 20,
        "sgd_minibatch_size": 10,
        "num_sgd_iter": 1,
        "model": {"custom_preprocessor": "tail", "fcnet_hiddens": [4]},
    },
)
result = trainer.train()
first = [w for n, w in trainer.get_policy().get_weights().items() if "hidden" in n and w.ndim == 2]
record(inputs=first[0].shape[1], reward=result["episode_reward_mean"])
trainer.stop()
