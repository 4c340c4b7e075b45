"""TD3 by its default config, made small."""

import gym
import numpy as np
import ray
from facts import record
from ray.rllib.agents.ddpg import TD3Trainer
from ray.rllib.agents.ddpg.td3 import TD3_DEFAULT_CONFIG


class Arm(gym.Env):
    def __init__(self, config):
        self.observation_space = gym.spaces.Box(-8, 8, (3,), np.float32)
        self.action_space = gym.spaces.Box(-2, 2, (1,), np.float32)

    def reset(self):
        self.n = 0
        return np.zeros(3, np.float32)

    def step(self, action):
        self.n += 1
        return np.full(3, self.n % 5, np.float32), -1.0, self.n == 10, {}


config = TD3_DEFAULT_CONFIG.copy()
config.update(
    num_workers=0,
    framework="torch",
    learning_starts=20,
    buffer_size=500,
    train_batch_size=16,
    timesteps_per_iteration=40,
    rollout_fragment_length=1,
    actor_hiddens=[8],
    critic_hiddens=[8],
)
ray.init()
trainer = TD3Trainer(env=Arm, config=config)
result = trainer.train()
record(
    twin=trainer.config["twin_q"],
    smooth=trainer.config["smooth_target_policy"],
    delay=trainer.config["policy_delay"],
    noise=trainer.config["exploration_config"]["type"],
    enough=result["timesteps_total"] >= 40,
    reward=result["episode_reward_mean"],
)
trainer.stop()
