"""Noise for continuous actions in DDPG, and deterministic evaluation."""

import gym
import numpy as np
import ray
from facts import record
from ray.rllib.agents.ddpg import DDPGTrainer


class Arm(gym.Env):
    def __init__(self, config):
        self.observation_space = gym.spaces.Box(-1, 1, (3,), np.float32)
        self.action_space = gym.spaces.Box(-2, 2, (1,), np.float32)

    def reset(self):
        self.n = 0
        return np.zeros(3, np.float32)

    def step(self, action):
        assert np.abs(action).max() <= 2
        self.n += 1
        return np.ones(3, np.float32), -1.0, self.n == 10, {}


ray.init()
trainer = DDPGTrainer(
    env=Arm,
    config={
        "num_workers": 0,
        "framework": "torch",
        "actor_hiddens": [8],
        "critic_hiddens": [8],
        "learning_starts": 20,
        "buffer_size": 500,
        "train_batch_size": 16,
        "timesteps_per_iteration": 40,
        "rollout_fragment_length": 1,
        "exploration_config": {
            "type": "OrnsteinUhlenbeckNoise",
            "random_timesteps": 10,
            "ou_base_scale": 0.1,
            "ou_theta": 0.15,
            "ou_sigma": 0.2,
            "initial_scale": 1.0,
            "final_scale": 0.02,
            "scale_timesteps": 1000,
        },
    },
)
result = trainer.train()
probe = np.zeros(3, np.float32)
quiet = {float(trainer.compute_action(probe, explore=False)[0]) for _ in range(3)}
loud = {float(trainer.compute_action(probe, explore=True)[0]) for _ in range(5)}
record(
    quiet=len(quiet),
    loud=len(loud) > 1,
    enough=result["timesteps_total"] >= 40,
    reward=result["episode_reward_mean"],
)
trainer.stop()
