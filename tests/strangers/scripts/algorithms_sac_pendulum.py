"""SAC on a Box, with networks of one's own sizes."""

import gym
import numpy as np
import ray
from facts import record
from ray.rllib.agents.sac import SACTrainer


class Arm(gym.Env):
    def __init__(self, config):
        self.observation_space = gym.spaces.Box(-8, 8, (3,), np.float32)
        self.action_space = gym.spaces.Box(-2, 2, (1,), np.float32)
        self.largest = 0.0

    def reset(self):
        self.n = 0
        return np.zeros(3, np.float32)

    def step(self, action):
        self.largest = max(self.largest, float(np.abs(action).max()))
        self.n += 1
        return np.full(3, self.n % 5, np.float32), -1.0, self.n == 10, {}


ray.init()
trainer = SACTrainer(
    env=Arm,
    config={
        "num_workers": 0,
        "framework": "torch",
        "Q_model": {"fcnet_hiddens": [8, 8]},
        "policy_model": {"fcnet_hiddens": [6, 6]},
        "tau": 0.01,
        "initial_alpha": 0.5,
        "learning_starts": 20,
        "buffer_size": 500,
        "train_batch_size": 16,
        "rollout_fragment_length": 1,
        "timesteps_per_iteration": 40,
        "prioritized_replay": False,
        "no_done_at_end": True,
        "n_step": 1,
        "optimization": {
            "actor_learning_rate": 0.0003,
            "critic_learning_rate": 0.0003,
            "entropy_learning_rate": 0.0003,
        },
    },
)
result = trainer.train()
env = trainer.workers.local_worker().env
action = trainer.compute_action(np.zeros(3, np.float32), explore=False)
stats = result["info"]["learner"]["default_policy"]
stats = stats.get("learner_stats", stats)
record(
    enough=result["timesteps_total"] >= 40,
    reward=result["episode_reward_mean"],
    inside=env.largest <= 2,
    action=[np.shape(action), bool(np.abs(action).max() <= 2)],
    stats=sorted(set(stats) & {"actor_loss", "critic_loss", "alpha_value", "mean_q"}),
    alpha=bool(abs(float(np.mean(stats["alpha_value"])) - 0.5) < 0.1),
)
trainer.stop()
