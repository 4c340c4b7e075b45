"""The evaluation's environment has another config, which the script looks into."""

import gym
import numpy as np
import ray
from facts import record
from ray import tune
from ray.rllib.agents import ppo


class Market(gym.Env):
    def __init__(self, config):
        self.observation_space = gym.spaces.Box(-9, 9, (2,), np.float32)
        self.action_space = gym.spaces.Discrete(2)
        self.start = config["df_start_point"]
        self.test = config.get("test_mode", False)
        self.keys = sorted(config)

    def reset(self):
        self.n = 0
        return np.zeros(2, np.float32)

    def step(self, action):
        self.n += 1
        return np.zeros(2, np.float32), float(self.start) + 100 * self.test, self.n == 2, {}


ray.init()
config = ppo.DEFAULT_CONFIG.copy()
config.update(
    {
        "env": Market,
        "env_config": {"df_start_point": 5, "other": [1, 2]},
        "framework": "torch",
        "num_workers": 0,
        "train_batch_size": 20,
        "rollout_fragment_length": 20,
        "sgd_minibatch_size": 20,
        "num_sgd_iter": 1,
        "evaluation_interval": 2,
        "evaluation_num_episodes": 3,
    }
)
config["evaluation_config"] = {
    "explore": False,
    "env_config": {"df_start_point": 0, "test_mode": True},
}
trainer = ppo.PPOTrainer(config=config)
results = [trainer.train() for _ in range(3)]
own = trainer.workers.local_worker().env
other = trainer.evaluation_workers.local_worker().env
analysis = tune.run("PPO", config=config, stop={"training_iteration": 2}, verbose=0)
record(
    has=["evaluation" in r for r in results],
    rewards=[results[0]["episode_reward_mean"], results[1]["evaluation"]["episode_reward_mean"]],
    episodes=results[1]["evaluation"]["episodes_this_iter"],
    own=[own.start, own.test, own.keys],
    other=[other.start, other.test, other.keys],
    last=analysis.trials[0].last_result["evaluation"]["episode_reward_mean"],
    best=analysis.get_best_config("episode_reward_mean", "max")["evaluation_config"]["env_config"],
)
trainer.stop()
