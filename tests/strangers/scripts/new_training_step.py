"""An algorithm with a training step of its own, in terms of Ray 2."""

import gymnasium as gym
import numpy as np
import ray
from facts import record
from ray.rllib.algorithms.ppo import PPO, PPOConfig
from ray.rllib.execution.rollout_ops import synchronous_parallel_sample, standardize_fields
from ray.rllib.execution.train_ops import train_one_step
from ray.rllib.utils.metrics import NUM_AGENT_STEPS_SAMPLED, NUM_ENV_STEPS_SAMPLED
from ray.rllib.utils.typing import ResultDict

seen = []


class Line(gym.Env):
    def __init__(self, config):
        self.observation_space = gym.spaces.Box(0, 50, (1,), np.float32)
        self.action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        self.n = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.n += 1
        return np.full(1, self.n, np.float32), 1.0, self.n == 4, False, {}


class Mine(PPO):
    def training_step(self) -> ResultDict:
        size = self.config.train_batch_size
        sampled = synchronous_parallel_sample(worker_set=self.workers, max_env_steps=size)
        several = standardize_fields(sampled.as_multi_agent(), ["advantages"])
        taken = self._counters
        taken[NUM_AGENT_STEPS_SAMPLED] += several.agent_steps()
        taken[NUM_ENV_STEPS_SAMPLED] += several.env_steps()
        seen.append([several.env_steps(), sorted(several.policy_batches)])
        learned = train_one_step(self, several)
        self.workers.sync_weights(global_vars={"timestep": taken[NUM_AGENT_STEPS_SAMPLED]})
        for name, info in learned.items():
            self.get_policy(name).update_kl(info["learner_stats"]["kl"])
        return learned


ray.init(num_cpus=2)
config = (
    PPOConfig(algo_class=Mine)
    .framework("torch")
    .environment(Line)
    .rollouts(num_rollout_workers=0, rollout_fragment_length=20)
    .training(train_batch_size=40, sgd_minibatch_size=20, num_sgd_iter=1, _enable_learner_api=False)
    .rl_module(_enable_rl_module_api=False)
)
algo = config.build()
results = [algo.train() for _ in range(2)]
record(
    seen=seen,
    name=type(algo).__name__,
    steps=[r["timesteps_total"] for r in results],
    sampled=[r["info"]["num_env_steps_sampled"] for r in results],
    stats=sorted(results[0]["info"]["learner"]["default_policy"]["learner_stats"]),
    reward=results[-1]["episode_reward_mean"],
)
algo.stop()
