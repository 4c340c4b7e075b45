"""PPO with the curiosity module in the exploration config."""

import gym
import numpy as np
import ray
from facts import record
from ray.rllib.agents import ppo


class Maze(gym.Env):
    def __init__(self, config):
        self.observation_space = gym.spaces.Box(0, 9, (4,), np.float32)
        self.action_space = gym.spaces.Discrete(4)

    def reset(self):
        self.n = 0
        return np.zeros(4, np.float32)

    def step(self, action):
        self.n += 1
        return np.full(4, self.n, np.float32), 0.0, self.n == 8, {}


ray.init()
config = ppo.DEFAULT_CONFIG.copy()
config["framework"] = "torch"
config["num_workers"] = 0
config["rollout_fragment_length"] = 40
config["train_batch_size"] = 40
config["sgd_minibatch_size"] = 40
config["num_sgd_iter"] = 2
config["exploration_config"] = {
    "type": "Curiosity",
    "eta": 0.2,
    "lr": 0.001,
    "feature_dim": 16,
    "feature_net_config": {"fcnet_hiddens": [], "fcnet_activation": "relu"},
    "inverse_net_hiddens": [16],
    "inverse_net_activation": "relu",
    "forward_net_hiddens": [16],
    "forward_net_activation": "relu",
    "beta": 0.2,
    "sub_exploration": {"type": "StochasticSampling"},
}
trainer = ppo.PPOTrainer(config=config, env=Maze)
result = trainer.train()
stats = result["info"]["learner"]["default_policy"]["learner_stats"]
record(
    reward=result["episode_reward_mean"],
    learned=stats["vf_loss"] > 0,
    exploration=type(trainer.get_policy().exploration).__name__,
    action=int(trainer.compute_action(np.zeros(4, np.float32), explore=False)) in range(4),
)
trainer.stop()
