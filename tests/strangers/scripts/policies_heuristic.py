"""A whole policy class of one's own that learns by hand, run by a trainer made for it."""

import gym
import numpy as np
import ray
from facts import record
from ray.rllib.agents.trainer_template import build_trainer
from ray.rllib.policy.policy import Policy


class Coin(gym.Env):
    def __init__(self, config):
        self.observation_space = gym.spaces.Box(0, 1, (1,), np.float32)
        self.action_space = gym.spaces.Discrete(2)

    def reset(self):
        self.n = 0
        return np.zeros(1, np.float32)

    def step(self, action):
        self.n += 1
        return np.ones(1, np.float32), float(action), self.n == 4, {}


class Counter(Policy):
    def __init__(self, observation_space, action_space, config):
        Policy.__init__(self, observation_space, action_space, config)
        self.best, self.learned = 1, 0

    def compute_actions(
        self,
        obs_batch,
        state_batches=None,
        prev_action_batch=None,
        prev_reward_batch=None,
        info_batch=None,
        episodes=None,
        **kwargs,
    ):
        return [self.best for _ in obs_batch], [], {}

    def learn_on_batch(self, samples):
        self.learned += samples.count
        return {"mean_reward": float(np.mean(samples["rewards"])), "count": samples.count}

    def get_weights(self):
        return {"best": self.best}

    def set_weights(self, weights):
        self.best = weights["best"]


CounterTrainer = build_trainer(name="Counter", default_policy=Counter)
ray.init()
trainer = CounterTrainer(
    env=Coin, config={"num_workers": 0, "rollout_fragment_length": 20, "train_batch_size": 20}
)
result = trainer.train()
record(
    reward=result["episode_reward_mean"],
    learned=trainer.get_policy().learned,
    name=CounterTrainer.__name__,
    weights=trainer.get_weights(),
)
trainer.stop()
