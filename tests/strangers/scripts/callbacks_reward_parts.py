"""Parts of the reward from infos, summed up by a function of callbacks for each trajectory."""

import gym
import numpy as np
import ray
from facts import record
from ray.rllib.agents.a3c import A2CTrainer


class Stairs(gym.Env):
    def __init__(self, config):
        self.observation_space = gym.spaces.Box(0, 20, (2,), np.float32)
        self.action_space = gym.spaces.Discrete(2)

    def reset(self):
        self.n = 0
        return np.zeros(2, np.float32)

    def step(self, action):
        self.n += 1
        parts = {"height": 0.25 * self.n, "alive": 1.0}
        return np.full(2, self.n, np.float32), sum(parts.values()), self.n == 6, parts


def add_up(info):
    policy, before = info["pre_batch"]
    metrics = info["episode"].custom_metrics
    for part in ("height", "alive"):
        metrics[part] = sum(step[part] for step in info["post_batch"]["infos"])
    metrics["steps"] = len(before["rewards"])
    metrics["acts"] = float(callable(policy.compute_actions))


ray.init()
trainer = A2CTrainer(
    env=Stairs,
    config={
        "num_workers": 0,
        "framework": "torch",
        "batch_mode": "complete_episodes",
        "train_batch_size": 18,
        "rollout_fragment_length": 18,
        "min_iter_time_s": 0,
        "callbacks": {"on_postprocess_traj": add_up},
    },
)
result = trainer.train()
record(metrics=result["custom_metrics"], reward=result["episode_reward_mean"])
trainer.stop()
