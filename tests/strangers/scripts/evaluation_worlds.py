"""Populations: worlds are set in evaluation workers' environments, which tell what they saw."""

import gym
import numpy as np
import ray
from facts import record
from ray.rllib.agents.ppo import PPOTrainer


@ray.remote
class Counter:
    def __init__(self):
        self.keys = []
        self.hashes = []

    def set_idxs(self, keys):
        self.keys = list(keys)

    def set_hashes(self, hashes):
        self.hashes = list(hashes)

    def get(self, hashed):
        return self.keys[self.hashes.index(hashed)]

    def scratch(self):
        return len(self.keys)


class World(gym.Env):
    def __init__(self, config):
        self.observation_space = gym.spaces.Box(0, 9, (3, 3), np.float32)
        self.action_space = gym.spaces.Discrete(4)
        self.world = np.zeros((3, 3), np.float32)
        self.key = None
        self.evaluating = config.get("evaluate", False)
        self.stats = []

    def set_worlds(self, worlds, counter):
        self.key = ray.get(counter.get.remote(hash(self)))
        self.world = worlds[self.key]
        self.stats = []

    def get_world_stats(self, evaluate):
        return [(self.key, evaluate, self.evaluating, len(self.stats), sum(self.stats))]

    def reset(self):
        self.n = 0
        return self.world

    def step(self, action):
        self.n += 1
        self.stats.append(1)
        return self.world, float(self.world.sum()), self.n == 3, {}


ray.init()
trainer = PPOTrainer(
    env=World,
    config={
        "framework": "torch",
        "num_workers": 0,
        "model": {"fcnet_hiddens": [4], "custom_model_config": {}},
        "rollout_fragment_length": 12,
        "train_batch_size": 12,
        "sgd_minibatch_size": 12,
        "num_sgd_iter": 1,
        "evaluation_interval": 10,
        "evaluation_num_workers": 2,
        "evaluation_num_episodes": 4,
        "evaluation_config": {"env_config": {"evaluate": True}, "explore": False},
    },
)
workers = trainer.evaluation_workers
worlds = {i: np.full((3, 3), i, np.float32) for i in range(3)}
counter = Counter.remote()
hashes = workers.foreach_worker(lambda w: w.foreach_env(lambda env: hash(env)))
shape = [len(h) for h in hashes]
hashes = [h for hs in hashes for h in hs]
counter.set_idxs.remote(list(range(len(hashes))))
counter.set_hashes.remote(hashes)
ray.get(counter.scratch.remote())
workers.foreach_worker(lambda w: w.foreach_env(lambda env: env.set_worlds(worlds, counter)))
stats = trainer.evaluate()
seen = workers.foreach_worker(lambda w: w.foreach_env(lambda env: env.get_world_stats(True)))
seen = sorted(s for ws in seen for es in ws for s in es)
inside = stats["evaluation"]
trained = trainer.train()
record(
    shape=shape,
    seen=[s[:3] for s in seen],
    remote=len(workers.remote_workers()),
    episodes=inside["episodes_this_iter"],
    rewards=sorted(inside["hist_stats"]["episode_reward"]),
    has="evaluation" in trained,
)
trainer.stop()
