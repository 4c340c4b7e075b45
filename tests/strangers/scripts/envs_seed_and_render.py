"""An environment with its own seed, `np_random`, `render` and `close`."""

import gym
import numpy as np
import ray
from facts import record
from gym.utils import seeding
from ray.rllib.agents.a3c import A2CTrainer


class Dice(gym.Env):
    metadata = {"render.modes": ["human", "rgb_array"]}
    reward_range = (0.0, 6.0)

    def __init__(self, config):
        self.observation_space = gym.spaces.Discrete(7)
        self.action_space = gym.spaces.Discrete(2)
        self.seeds = []
        self.seed(3)

    def seed(self, seed=None):
        self.np_random, used = seeding.np_random(seed)
        self.seeds.append(seed)
        return [used]

    def reset(self):
        self.n = 0
        return 0

    def step(self, action):
        self.n += 1
        eyes = 1 + int(self.np_random.uniform(0, 6))
        return eyes, 1.0, self.n == 4, {}

    def render(self, mode="human"):
        return np.zeros((2, 2, 3), np.uint8) if mode == "rgb_array" else "dice"

    def close(self):
        pass


ray.init()
config = {
    "num_workers": 0,
    "framework": "torch",
    "seed": 42,
    "rollout_fragment_length": 20,
    "train_batch_size": 20,
    "min_iter_time_s": 0,
}
trainer = A2CTrainer(env=Dice, config=config)
result = trainer.train()
env = trainer.workers.local_worker().env
record(
    seeds=env.seeds[:2],
    picture=env.render(mode="rgb_array").shape,
    said=env.render(),
    reward=result["episode_reward_mean"],
    span=env.reward_range,
)
env.close()
trainer.stop()
