"""A grid by a table of transitions, as `gym.envs.toy_text.discrete` was derived from."""

import numpy as np
import ray
from facts import record
from gym.envs.toy_text import discrete
from ray import tune
from ray.rllib.agents.ppo import PPOTrainer


class Track(discrete.DiscreteEnv):
    def __init__(self, length=6):
        table = {
            s: {a: [(1.0, s + 1, 1.0, s + 1 == length)] for a in (0, 1)} for s in range(length)
        }
        table[length] = {a: [(1.0, length, 0.0, True)] for a in (0, 1)}
        start = np.zeros(length + 1)
        start[0] = 1.0
        super().__init__(length + 1, 2, table, start)


tune.register_env("track", lambda config: Track(**config))
ray.init()
trainer = PPOTrainer(
    env="track",
    config={
        "num_workers": 0,
        "framework": "torch",
        "env_config": {"length": 4},
        "rollout_fragment_length": 40,
        "train_batch_size": 40,
        "sgd_minibatch_size": 20,
        "num_sgd_iter": 1,
    },
)
result = trainer.train()
env = Track()
first = env.reset()
step = env.step(1)
record(
    reward=result["episode_reward_mean"],
    length=result["episode_len_mean"],
    first=int(first),
    step=[int(step[0]), step[1], step[2], step[3]],
    last=env.lastaction,
    sizes=[env.nS, env.nA],
)
trainer.stop()
