"""LinUCB and Thompson sampling on contexts that tell the best arm."""

import gym
import numpy as np
import ray
from facts import record
from ray.rllib.agents.bandit import BanditLinTSTrainer, BanditLinUCBTrainer


class Ads(gym.Env):
    def __init__(self, config=None):
        self.action_space = gym.spaces.Discrete(3)
        self.observation_space = gym.spaces.Box(0.0, 1.0, (3,), np.float64)
        self.shown = 0

    def reset(self):
        self.shown += 1
        self.context = np.eye(3)[self.shown % 3]
        return self.context

    def step(self, arm):
        reward = float(self.context[arm])
        return self.context, reward, True, {"regret": 1.0 - reward}


ray.init()
learned = {}
for cls in (BanditLinUCBTrainer, BanditLinTSTrainer):
    trainer = cls(env=Ads, config={"num_workers": 0, "framework": "torch"})
    for _ in range(8):
        result = trainer.train()
    arms = trainer.get_policy().model.arms
    learned[cls.__name__] = {
        "chosen": [int(trainer.compute_single_action(row, explore=False)) for row in np.eye(3)],
        "theta": [list(arm.theta.shape) for arm in arms],
        "length": result["episode_len_mean"],
        "learns": result["episode_reward_mean"] > 0.5,
    }
    trainer.stop()
record(**learned)
