"""The fluent configs of 2.0: rollouts, training, resources, callbacks, evaluation."""

import gym
import numpy as np
import ray
from facts import record
from ray.rllib.algorithms.callbacks import DefaultCallbacks
from ray.rllib.algorithms.ppo import PPOConfig

ends = []


class Ends(DefaultCallbacks):
    def on_episode_end(self, *, worker, base_env, policies, episode, env_index, **kwargs):
        ends.append(episode.length)
        episode.custom_metrics["length"] = episode.length


class Hill(gym.Env):
    def __init__(self, config):
        self.height = config["height"]
        self.observation_space = gym.spaces.Box(0, 99, (1,), np.float32)
        self.action_space = gym.spaces.Discrete(2)

    def reset(self):
        self.n = 0
        return np.zeros(1, np.float32)

    def step(self, action):
        self.n += 1
        return np.full(1, self.n, np.float32), 1.0, self.n == self.height, {}


ray.init()
config = (
    PPOConfig()
    .environment(env=Hill, env_config={"height": 4})
    .framework("torch")
    .rollouts(num_rollout_workers=0, rollout_fragment_length=20)
    .training(train_batch_size=40, sgd_minibatch_size=20, num_sgd_iter=2, lr=0.002, lambda_=0.9)
    .callbacks(Ends)
    .resources(num_gpus=0)
    .debugging(seed=3)
)
agent = config.build()
told = agent.train()
record(
    length=told["episode_len_mean"],
    metrics=told["custom_metrics"],
    ends=set(ends),
    steps=[told["num_env_steps_sampled"], told["num_env_steps_trained"]],
    counters=told["counters"]["num_env_steps_sampled"],
    action=agent.compute_single_action(np.zeros(1, np.float32)) in (0, 1),
    lr=agent.config["lr"],
    gae=agent.get_policy().config["lambda"],
)
agent.stop()
