"""Images with layers of one's own, and numbers of type uint8."""

import gym
import numpy as np
import ray
from facts import record
from ray.rllib.agents.ppo import PPOTrainer


class Camera(gym.Env):
    def __init__(self, config):
        self.observation_space = gym.spaces.Box(0, 255, (42, 42, 3), np.uint8)
        self.action_space = gym.spaces.Discrete(4)

    def reset(self):
        self.n = 0
        return np.zeros((42, 42, 3), np.uint8)

    def step(self, action):
        self.n += 1
        return np.full((42, 42, 3), 20 * self.n, np.uint8), 1.0, self.n == 5, {}


ray.init()
trainer = PPOTrainer(
    env=Camera,
    config={
        "num_workers": 0,
        "framework": "torch",
        "preprocessor_pref": None,
        "rollout_fragment_length": 20,
        "train_batch_size": 20,
        "sgd_minibatch_size": 10,
        "num_sgd_iter": 1,
        "model": {
            "conv_filters": [[4, [4, 4], 2], [8, [4, 4], 2], [16, [11, 11], 1]],
            "conv_activation": "relu",
        },
    },
)
result = trainer.train()
weights = trainer.get_policy().get_weights()
record(
    kernels=sorted({w.size for w in weights.values() if w.ndim == 4}),
    reward=result["episode_reward_mean"],
    action=trainer.compute_action(np.zeros((42, 42, 3), np.uint8)) in range(4),
)
trainer.stop()
