"""Experts' steps in numpy files, by a reader of one's own: under a registered name, and by a function."""

import os
import tempfile

import gym
import numpy as np
import ray
from facts import record
from ray.rllib.agents.marwil import BCTrainer
from ray.rllib.offline import InputReader, IOContext, ShuffledInput
from ray.rllib.policy.sample_batch import SampleBatch
from ray.tune.registry import register_input

STEPS = 60
folder = tempfile.mkdtemp()
np.savez(
    os.path.join(folder, "expert.npz"),
    obs=np.linspace(0, 5, 2 * STEPS).reshape(STEPS, 2).astype(np.float32),
    actions=np.arange(STEPS) % 2,
)


class Walk(gym.Env):
    observation_space = gym.spaces.Box(0, 20, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, config=None):
        self.n = 0

    def reset(self):
        self.n = 0
        return np.zeros(2, np.float32)

    def step(self, action):
        self.n += 1
        return np.full(2, self.n, np.float32), 1.5, self.n == 6, {}


class Expert(InputReader):
    def __init__(self, context: IOContext):
        own = context.config.get("input_config") or {}
        self.data = np.load(os.path.join(own.get("folder", folder), "expert.npz"))
        self.first = 0

    def next(self):
        rows = slice(self.first, self.first + 12)
        self.first = (self.first + 12) % STEPS
        return SampleBatch(
            {
                SampleBatch.OBS: self.data["obs"][rows],
                SampleBatch.NEXT_OBS: self.data["obs"][rows],
                SampleBatch.ACTIONS: self.data["actions"][rows],
                SampleBatch.REWARDS: np.ones(12, np.float32),
                SampleBatch.DONES: np.array([False] * 11 + [True]),
                SampleBatch.EPS_ID: np.full(12, self.first),
                SampleBatch.T: np.arange(12),
            }
        )


ray.init()
register_input("expert", lambda context: Expert(context))
config = {"num_workers": 0, "framework": "torch", "train_batch_size": 24, "input_evaluation": []}
named = BCTrainer(
    env=Walk,
    config=dict(
        config,
        input="expert",
        input_config={"folder": folder},
        evaluation_interval=1,
        evaluation_num_workers=0,
        evaluation_duration=1,
        evaluation_config={"input": "sampler"},
    ),
)
first = named.train()
named.stop()
given = BCTrainer(env=Walk, config=dict(config, input=lambda c: ShuffledInput(Expert(c), 3)))
second = given.train()
given.stop()
stats = [each["info"]["learner"]["default_policy"]["learner_stats"] for each in (first, second)]
record(
    evaluated=first["evaluation"]["episode_reward_mean"],
    stats=sorted(set(stats[0]) & {"policy_loss", "total_loss"}),
    learned=[bool(np.isfinite(each["policy_loss"])) for each in stats],
    iterations=[first["training_iteration"], second["training_iteration"]],
)
