"""Several environments stepped together by gym, beside a trainer that acts for all of them."""

import gym
import numpy as np
import ray
from facts import record
from gym.vector import AsyncVectorEnv, SyncVectorEnv
from ray.rllib.agents.ppo import PPOTrainer


class Kiln(gym.Env):
    """Gets hotter by itself, and is too hot after as many steps as it was made with."""

    def __init__(self, limit=4):
        self.limit = limit
        self.observation_space = gym.spaces.Box(0, 99, (2,), np.float32)
        self.action_space = gym.spaces.Discrete(2)
        self.heat = 0

    def reset(self):
        self.heat = 0
        return np.array([self.heat, self.limit], np.float32)

    def step(self, action):
        self.heat += 1
        seen = np.array([self.heat, self.limit], np.float32)
        return seen, self.heat / 2, self.heat >= self.limit, {"heat": self.heat}


def kiln(limit):
    return lambda: Kiln(limit)


kilns = SyncVectorEnv([kiln(2), kiln(3), kiln(5)])
kilns.seed(3)
first = kilns.reset()
steps = [kilns.step([0, 1, 0]) for _ in range(3)]
others = AsyncVectorEnv([kiln(2), kiln(9)])
others.reset()
others.step_async((1, 1))
_, together, _, infos = others.step_wait()
others.close()
poles = gym.vector.make("CartPole-v1", num_envs=3, asynchronous=False)
poles.seed(7)
begun = poles.reset()
_, pole_rewards, pole_dones, _ = poles.step(poles.action_space.sample())

ray.init()
trainer = PPOTrainer(
    env="CartPole-v1",
    config={
        "num_workers": 0,
        "framework": "torch",
        "rollout_fragment_length": 20,
        "train_batch_size": 20,
        "sgd_minibatch_size": 10,
        "num_sgd_iter": 1,
    },
)
by_index = trainer.compute_actions(dict(enumerate(begun)))
acted = poles.step([by_index[index] for index in range(poles.num_envs)])
trainer.stop()
record(
    spaces=[kilns.observation_space.shape, kilns.single_observation_space.shape],
    actions=[len(kilns.action_space), kilns.single_action_space.n],
    vector=[kilns.num_envs, kilns.is_vector_env],
    first=first,
    observations=[step[0] for step in steps],
    rewards=[step[1] for step in steps],
    dones=[step[2] for step in steps],
    infos=[list(step[3]) for step in steps],
    types=[step.dtype.name for step in steps[-1][:3]],
    others=[together, [info["heat"] for info in infos]],
    poles=[begun.shape, pole_rewards, pole_dones, len(poles.action_space)],
    acted=[acted[0].shape, acted[1], sorted(by_index)],
)
