"""Nested observations and a tuple of actions."""

import gym
import numpy as np
import ray
from facts import record
from gym.spaces import Box, Dict, Discrete, MultiDiscrete, Tuple
from ray.rllib.agents.ppo import PPOTrainer


class Crane(gym.Env):
    def __init__(self, config):
        self.observation_space = Dict(
            {
                "arm": Tuple((Discrete(3), Box(-1.0, 1.0, (2,), dtype=np.float32))),
                "belts": MultiDiscrete([2, 4]),
            }
        )
        self.action_space = Tuple((Discrete(2), Box(-1.0, 1.0, (1,), dtype=np.float32)))
        self.seen = []

    def look(self):
        return {"arm": (self.n % 3, np.zeros(2, np.float32)), "belts": np.array([1, self.n % 4])}

    def reset(self):
        self.n = 0
        return self.look()

    def step(self, action):
        lift, move = action
        self.seen.append((int(lift), np.shape(move)))
        self.n += 1
        return self.look(), 1.0, self.n == 6, {}


ray.init()
config = {
    "num_workers": 0,
    "framework": "torch",
    "train_batch_size": 60,
    "rollout_fragment_length": 60,
    "sgd_minibatch_size": 30,
    "num_sgd_iter": 1,
    "model": {"fcnet_hiddens": [8]},
}
trainer = PPOTrainer(env=Crane, config=config)
result = trainer.train()
env = trainer.workers.local_worker().env
action = trainer.compute_action(env.reset())
record(
    reward=result["episode_reward_mean"],
    episodes=result["episodes_total"],
    flat=trainer.get_policy().observation_space.shape,
    enough=len(env.seen) >= 60,
    shapes={shape for _, shape in env.seen},
    action=[len(action), np.shape(action[1])],
)
trainer.stop()
