"""DQN with schedules, prioritized replay, dueling heads and n steps."""

import gym
import numpy as np
import ray
from facts import record
from ray.rllib.agents.dqn import DQNTrainer


class Lamp(gym.Env):
    def __init__(self, config):
        self.observation_space = gym.spaces.Box(0, 9, (2,), np.float32)
        self.action_space = gym.spaces.Discrete(3)

    def reset(self):
        self.n = 0
        return np.zeros(2, np.float32)

    def step(self, action):
        self.n += 1
        return np.full(2, self.n, np.float32), 1.0, self.n == 5, {}


ray.init()
trainer = DQNTrainer(
    env=Lamp,
    config={
        "num_workers": 0,
        "framework": "torch",
        "n_step": 3,
        "double_q": True,
        "dueling": True,
        "hiddens": [16],
        "model": {"fcnet_hiddens": [12], "fcnet_activation": "relu"},
        "buffer_size": 200,
        "prioritized_replay": True,
        "prioritized_replay_alpha": 0.5,
        "learning_starts": 20,
        "train_batch_size": 8,
        "rollout_fragment_length": 4,
        "timesteps_per_iteration": 60,
        "target_network_update_freq": 20,
        "exploration_config": {
            "type": "EpsilonGreedy",
            "initial_epsilon": 1.0,
            "final_epsilon": 0.1,
            "epsilon_timesteps": 100,
        },
        "lr": 0.01,
        "adam_epsilon": 1e-6,
    },
)
result = trainer.train()
policy = trainer.get_policy()
stats = result["info"]["learner"]["default_policy"]
record(
    enough=result["timesteps_total"] >= 60,
    trained=result["info"]["num_steps_trained"] > 0,
    targets=result["info"]["num_target_updates"] > 0,
    stats=sorted(set(stats.get("learner_stats", stats)) & {"mean_q", "max_q", "min_q"}),
    epsilon=0.1 <= policy.get_exploration_info()["cur_epsilon"] < 1.0
    if hasattr(policy, "get_exploration_info")
    else True,
    reward=result["episode_reward_mean"],
)
trainer.stop()
