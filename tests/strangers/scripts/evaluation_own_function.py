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
    rewards = []
    for length in (4, 6):
        eval_workers.foreach_worker(
            lambda worker: worker.foreach_env(lambda env: env.set_length(length))
        )
        ray.get([w.sample.remote() for w in eval_workers.remote_workers()])
        episodes, _ = collect_episodes(
            remote_workers=eval_workers.remote_workers(), timeout_seconds=99999
        )
        rewards.append(summarize_episodes(episodes)["episode_reward_max"])
    return {"longest": max(rewards), "rewards": rewards, "mine": 1}


ray.init(num_cpus=4)
trainer = PPOTrainer(
    env=Corridor,
    config={
        "num_workers": 0,
        "framework": "torch",
        "env_config": {"length": 5},
        "batch_mode": "complete_episodes",
        "rollout_fragment_length": 20,
        "train_batch_size": 20,
        "sgd_minibatch_size": 10,
        "num_sgd_iter": 1,
        "evaluation_interval": 1,
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
