"""A curriculum: `on_train_result` makes each worker's environment harder."""

import gym
import numpy as np
import ray
from facts import record
from ray.rllib.agents.callbacks import DefaultCallbacks
from ray.rllib.agents.ppo import PPOTrainer


class Stairs(gym.Env):
    def __init__(self, config):
        self.observation_space = gym.spaces.Box(0, 100, (1,), np.float32)
        self.action_space = gym.spaces.Discrete(2)
        self.phase = 1

    def set_phase(self, phase):
        self.phase = phase

    def reset(self):
        self.n = 0
        return np.zeros(1, np.float32)

    def step(self, action):
        self.n += 1
        return np.full(1, self.n, np.float32), 1.0, self.n >= 5 * self.phase, {}


class Harder(DefaultCallbacks):
    def on_train_result(self, *, trainer, result, **kwargs):
        phase = result["training_iteration"] + 1
        trainer.workers.foreach_worker(
            lambda worker: worker.foreach_env(lambda env: env.set_phase(phase))
        )


ray.init()
trainer = PPOTrainer(
    env=Stairs,
    config={
        "num_workers": 0,
        "num_envs_per_worker": 2,
        "framework": "torch",
        "callbacks": Harder,
        "batch_mode": "complete_episodes",
        "rollout_fragment_length": 30,
        "train_batch_size": 60,
        "sgd_minibatch_size": 30,
        "num_sgd_iter": 1,
        "metrics_smoothing_episodes": 1,
    },
)
lengths = []
for _ in range(3):
    result = trainer.train()
    lengths.append([min(result["hist_stats"]["episode_lengths"][-2:]), result["timesteps_total"]])
phases = trainer.workers.foreach_worker(lambda w: w.foreach_env(lambda env: env.phase))
record(lengths=[row[0] for row in lengths], phases=phases)
trainer.stop()
