"""The environment in the config and as an argument; the instance's own attributes afterwards."""

import gym
import numpy as np
import ray
from facts import record
from ray import tune
from ray.rllib.agents.registry import get_agent_class


class Buffer(gym.Env):
    made = 0

    def __init__(self, env_config):
        Buffer.made += 1
        self.size = env_config["size"]
        self.keys = sorted(env_config)
        self.observation_space = gym.spaces.Box(
            low=np.zeros(self.size), high=np.ones(self.size), dtype=np.float64
        )
        self.action_space = gym.spaces.MultiDiscrete([2] * self.size)

    def reset(self):
        self.t = 0
        return np.zeros(self.size)

    def step(self, action):
        assert len(action) == self.size
        self.t += 1
        return np.full(self.size, 0.5), 1, self.t > 7, {}


ray.init(ignore_reinit_error=True)
tune.register_env("buffer", lambda c: Buffer(c))
Trainer = get_agent_class("PPO")
trainer = Trainer(
    config={
        "env": "buffer",
        "num_workers": 0,
        "framework": "torch",
        "env_config": {"size": 3, "name": "left"},
        "rollout_fragment_length": 32,
        "train_batch_size": 32,
        "sgd_minibatch_size": 16,
        "num_sgd_iter": 1,
    },
    env="buffer",
)
result = trainer.train()
env = trainer.workers.local_worker().env
action = trainer.compute_action(env.reset())
record(
    keys=env.keys,
    length=result["episode_len_mean"],
    action=np.shape(action),
    config_env=trainer.config["env"],
    size=trainer.config["env_config"]["size"],
)
trainer.stop()
