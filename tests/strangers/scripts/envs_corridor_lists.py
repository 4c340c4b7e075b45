"""An environment that returns plain lists and Python numbers."""

import gym
import ray
from facts import record
from gym import spaces
from ray.rllib.agents.ppo import PPOTrainer


class Conveyor(gym.Env):
    def __init__(self, env_config):
        self.length = env_config.get("length", 8)
        self.action_space = spaces.Discrete(2)
        self.observation_space = spaces.Box(low=-100, high=100, shape=(2,))
        self.place = 0

    def reset(self):
        self.place = 0
        return [0, self.length]

    def step(self, action):
        assert action in (0, 1)
        self.place += 1
        done = self.place >= self.length
        return [self.place, self.length - self.place], 2, done, {}


ray.init()
config = {
    "num_workers": 0,
    "train_batch_size": 80,
    "rollout_fragment_length": 80,
    "sgd_minibatch_size": 40,
    "num_sgd_iter": 2,
    "framework": "torch",
    "env_config": {"length": 8},
}
trainer = PPOTrainer(env=Conveyor, config=config)
for _ in range(2):
    result = trainer.train()
record(
    iterations=result["training_iteration"],
    steps=result["timesteps_total"],
    episodes=result["episodes_total"],
    reward=result["episode_reward_mean"],
    length=result["episode_len_mean"],
    action_type=trainer.compute_action([3, 5]) in (0, 1),
)
trainer.stop()
