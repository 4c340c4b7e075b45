"""Several agents in a gym environment with dicts of spaces by number: one policy acts for all."""

import gym
import numpy as np
import ray
from facts import record
from ray.rllib.agents.ppo import PPOTrainer


class Pumps(gym.Env):
    """Three pumps; what each sees and does is in a dict by its number."""

    kinds = set()

    def __init__(self, config):
        self.numbers = list(range(config["pumps"]))
        self.observation_space = gym.spaces.Dict(
            {n: gym.spaces.Box(0, 9, (2,), np.float32) for n in self.numbers}
        )
        self.action_space = gym.spaces.Dict(
            {
                0: gym.spaces.Discrete(2),
                1: gym.spaces.Box(-1, 1, (2,), np.float32),
                2: gym.spaces.MultiDiscrete([2, 3]),
            }
        )
        self.minute = 0

    def see(self):
        return {n: np.full(2, self.minute, np.float32) for n in self.numbers}

    def reset(self):
        self.minute = 0
        return self.see()

    def step(self, action):
        first, second, third = (action[n] for n in self.numbers)
        self.kinds.add((isinstance(action, dict), np.shape(first), np.shape(second)))
        self.kinds.add(
            (np.asarray(first).dtype.kind, np.asarray(third).dtype.kind, np.shape(third))
        )
        self.minute += 1
        return self.see(), 2.0, self.minute == 6, {"minutes": {n: self.minute for n in action}}


ray.init()
trainer = PPOTrainer(
    env=Pumps,
    config={
        "env_config": {"pumps": 3},
        "num_workers": 0,
        "framework": "torch",
        "rollout_fragment_length": 30,
        "train_batch_size": 30,
        "sgd_minibatch_size": 15,
        "num_sgd_iter": 1,
        "model": {"fcnet_hiddens": [8]},
    },
)
result = trainer.train()
pumps = Pumps({"pumps": 3})
action = trainer.compute_single_action(pumps.reset())
record(
    kinds=sorted(map(str, Pumps.kinds)),
    reward=result["episode_reward_mean"],
    length=result["episode_len_mean"],
    acted={n: np.shape(part) for n, part in action.items()},
    inside=pumps.action_space.contains(action),
)
trainer.stop()
