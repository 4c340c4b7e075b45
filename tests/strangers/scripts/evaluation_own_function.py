"""An evaluation function of one's own."""

import gym
import numpy as np
import ray
from facts import record
from ray.rllib.agents.ppo import PPOTrainer
from ray.rllib.evaluation.metrics import collect_episodes, summarize_episodes


class Corridor(gym.Env):
    def __init__(self, config):
        self.length = config["length"]
        self.observation_space = gym.spaces.Box(0, 99, (1,), np.float32)
        self.action_space = gym.spaces.Discrete(2)

    def set_length(self, length):
        self.length = length

    def reset(self):
        self.n = 0
        return np.zeros(1, np.float32)

    def step(self, action):
        self.n += 1
        return np.full(1, self.n, np.float32), 1.0, self.n >= self.length, {}


def by_lengths(trainer, eval_workers):
    found, (only,) = [], eval_workers.remote_workers()
    for length in (4, 6):
        ray.get(only.foreach_env.remote(lambda env: env.set_length(length)))
        ray.get(only.sample.remote())
        told = summarize_episodes(collect_episodes(remote_workers=[only], timeout_seconds=600)[0])
        found.append(told["episode_reward_max"])
    return {"longest": max(found), "rewards": found, "mine": 1}


ray.init(num_cpus=4)
trainer = PPOTrainer(
    env=Corridor,
    config={
        "num_workers": 0,
        "framework": "torch",
        "env_config": {"length": 5},
        "batch_mode": "complete_episodes",
        "evaluation_interval": 1,
        **dict.fromkeys(("rollout_fragment_length", "train_batch_size"), 20),
        "sgd_minibatch_size": 10,
        "num_sgd_iter": 1,
        "evaluation_num_workers": 1,
        "custom_eval_function": by_lengths,
    },
)
result = trainer.train()
record(
    evaluation={k: result["evaluation"][k] for k in ("longest", "mine")},
    training=result["episode_reward_mean"],
)
trainer.stop()
