"""Settings of the built-in model: shared layers, a free standard deviation, activations."""

import gym
import numpy as np
import ray
from facts import record
from ray.rllib.agents.ppo import PPOTrainer


class Arm(gym.Env):
    def __init__(self, config):
        self.observation_space = gym.spaces.Box(-1, 1, (3,), np.float32)
        self.action_space = gym.spaces.Box(-1, 1, (2,), np.float32)

    def reset(self):
        self.n = 0
        return np.zeros(3, np.float32)

    def step(self, action):
        self.n += 1
        return np.ones(3, np.float32), 1.0, self.n == 5, {}


ray.init()
found = {}
for name, model in {
    "shared": {"fcnet_hiddens": [5], "vf_share_layers": True},
    "apart": {"fcnet_hiddens": [5], "vf_share_layers": False, "fcnet_activation": "relu"},
    "free": {"fcnet_hiddens": [5, 4], "free_log_std": True, "vf_share_layers": False},
}.items():
    trainer = PPOTrainer(
        env=Arm,
        config={
            "model": model,
            "framework": "torch",
            **dict.fromkeys(("rollout_fragment_length", "train_batch_size"), 20),
            "sgd_minibatch_size": 10,
            "num_sgd_iter": 1,
            "num_workers": 0,
        },
    )
    trainer.train()
    weights = trainer.get_policy().get_weights()
    found[name] = sorted([list(w.shape) for w in weights.values() if w.ndim == 2])
    trainer.stop()
record(**found)
