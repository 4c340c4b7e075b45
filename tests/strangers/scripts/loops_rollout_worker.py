"""A loop of one's own over a RolloutWorker, without a trainer."""

import gym
import numpy as np
import ray
from facts import record
from ray.rllib.evaluation import RolloutWorker
from ray.rllib.evaluation.metrics import collect_metrics
from ray.rllib.policy import Policy
from ray.rllib.policy.sample_batch import SampleBatch


class Walk(gym.Env):
    observation_space = gym.spaces.Box(0, 99, (1,), np.float32)
    action_space = gym.spaces.Discrete(3)

    def reset(self):
        self.n = 0
        return np.zeros(1, np.float32)

    def step(self, action):
        self.n += 1
        return np.full(1, self.n, np.float32), float(action), self.n == 5, {}


class Two(Policy):
    w = 1.0

    def compute_actions(self, obs_batch, state_batches=None, **kwargs):
        return np.array([2] * len(obs_batch)), [], {"guess": np.array([0.5] * len(obs_batch))}

    def learn_on_batch(self, samples):
        return {}

    def get_weights(self):
        return {"w": self.w}

    def set_weights(self, weights):
        self.w = weights["w"]


ray.init()
worker = RolloutWorker(env_creator=lambda config: Walk(), policy=Two, rollout_fragment_length=10)
batches = [worker.sample() for _ in range(2)]
whole = SampleBatch.concat_samples(batches)
worker.set_weights({"default_policy": {"w": 2.0}})
metrics = collect_metrics(worker)
record(
    count=whole.count,
    rewards=float(whole["rewards"].sum()),
    dones=int(np.sum(whole["dones"])),
    guess=float(whole["guess"][0]),
    obs=whole["obs"][:6, 0],
    next_obs=whole["new_obs"][:2, 0],
    weights=worker.get_weights(),
    reward=metrics["episode_reward_mean"],
    episodes=metrics["episodes_this_iter"],
    policy=type(worker.get_policy()).__name__,
)
worker.stop()
