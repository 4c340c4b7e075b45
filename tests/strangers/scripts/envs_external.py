"""An environment that runs in its own thread and asks for actions."""

import gym
import numpy as np
import ray
from facts import record
from ray.rllib.agents.ppo import PPOTrainer
from ray.rllib.env.external_env import ExternalEnv
from ray.tune.registry import register_env


class Plant(ExternalEnv):
    def __init__(self, config):
        super().__init__(
            action_space=gym.spaces.Discrete(2),
            observation_space=gym.spaces.Box(0, 10, (1,), np.float32),
        )

    def run(self):
        while True:
            episode = self.start_episode()
            for n in range(4):
                action = self.get_action(episode, np.array([n], np.float32))
                assert action in (0, 1)
                self.log_returns(episode, 2.0, info={"n": n})
            self.end_episode(episode, np.array([4], np.float32))


register_env("plant", lambda config: Plant(config))
ray.init()
trainer = PPOTrainer(
    env="plant",
    config={
        "num_workers": 0,
        "framework": "torch",
        "rollout_fragment_length": 40,
        "train_batch_size": 40,
        "sgd_minibatch_size": 20,
        "num_sgd_iter": 1,
    },
)
result = trainer.train()
record(
    reward=result["episode_reward_mean"],
    length=result["episode_len_mean"],
    steps=result["timesteps_total"],
)
trainer.stop()
