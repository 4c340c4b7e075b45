"""A curriculum by `env_task_fn`, and the worker's environments asked for their tasks."""

import gym
import numpy as np
import ray
from facts import record
from ray.rllib.agents.ppo import PPOTrainer
from ray.rllib.env.apis.task_settable_env import TaskSettableEnv
from ray.tune.registry import register_env

told = []


class Levels(TaskSettableEnv):
    def __init__(self, config):
        self.observation_space = gym.spaces.Box(0, 50, (1,), np.float32)
        self.action_space = gym.spaces.Discrete(2)
        self.level = config.get("start_level", 1)
        self.switch = False

    def sample_tasks(self, n_tasks):
        return [i + 1 for i in range(n_tasks)]

    def get_task(self):
        return self.level

    def set_task(self, task):
        self.level = task
        self.switch = True

    def reset(self):
        self.n = 0
        return np.zeros(1, np.float32)

    def step(self, action):
        self.n += 1
        return np.full(1, self.n, np.float32), float(self.level), self.n == 4, {}


def next_task(train_results, task_settable_env, env_ctx):
    told.append(
        [
            round(train_results["episode_reward_mean"], 3),
            task_settable_env.get_task(),
            env_ctx.worker_index,
        ]
    )
    return int(train_results["episode_reward_mean"] / 4) + 1


ray.init()
register_env("levels", lambda config: Levels(config))
trainer = PPOTrainer(
    config={
        "env": "levels",
        "env_config": {"start_level": 1},
        "env_task_fn": next_task,
        "framework": "torch",
        "num_workers": 0,
        "num_envs_per_worker": 2,
        "train_batch_size": 40,
        "rollout_fragment_length": 20,
        "sgd_minibatch_size": 20,
        "num_sgd_iter": 1,
    }
)
results = [trainer.train() for _ in range(3)]
tasks = trainer.workers.foreach_env(lambda env: env.get_task())
trainer.workers.foreach_worker(lambda w: w.foreach_env(lambda env: env.set_task(9)))
record(
    told=[t[1:] for t in told],
    tasks=tasks,
    later=trainer.workers.foreach_env_with_context(
        lambda env, ctx: [env.get_task(), ctx.vector_index, ctx.worker_index]
    ),
    count=len(results),
)
trainer.stop()
