"""A parallel environment of PettingZoo with `reset()` without a seed, through Ray's wrapper."""

import gym
import numpy as np
import ray
from facts import record
from ray.rllib.agents.ppo import PPOTrainer
from ray.rllib.env.wrappers.pettingzoo_env import ParallelPettingZooEnv
from ray.tune.registry import register_env


class Pistons:
    metadata = {"name": "pistons"}

    def __init__(self, pistons=3):
        self.possible_agents = ["piston_%d" % i for i in range(pistons)]

    def observation_space(self, agent):
        return gym.spaces.Box(0, 9, (2,), np.float32)

    def action_space(self, agent):
        return gym.spaces.Box(-1, 1, (1,), np.float32)

    def reset(self):
        self.n = 0
        self.agents = list(self.possible_agents)
        return {a: np.zeros(2, np.float32) for a in self.agents}

    def step(self, actions):
        assert set(actions) == set(self.agents)
        self.n += 1
        done = self.n == 5
        obs = {a: np.full(2, self.n, np.float32) for a in self.agents}
        result = (
            obs,
            {a: 0.5 for a in self.agents},
            {a: done for a in self.agents},
            {a: {} for a in self.agents},
        )
        if done:
            self.agents = []
        return result

    def close(self):
        pass

    def seed(self, seed=None):
        pass

    def render(self, mode="human"):
        return mode

    @property
    def unwrapped(self):
        return self


register_env("pistons", lambda config: ParallelPettingZooEnv(Pistons(**config)))
env = ParallelPettingZooEnv(Pistons())
obs = env.reset()
_, rewards, dones, _ = env.step({a: np.zeros(1) for a in obs})
ray.init()
trainer = PPOTrainer(
    env="pistons",
    config={
        "num_workers": 0,
        "framework": "torch",
        "env_config": {"pistons": 2},
        "rollout_fragment_length": 50,
        "train_batch_size": 50,
        "sgd_minibatch_size": 25,
        "num_sgd_iter": 1,
        "multiagent": {
            "policies": {"shared": (None, env.observation_space, env.action_space, {})},
            "policy_mapping_fn": lambda agent, *_, **__: "shared",
        },
    },
)
result = trainer.train()
record(
    space=[env.action_space.shape, env.observation_space.shape],
    agents=sorted(obs),
    rewards=rewards,
    dones=dones,
    mode=env.render("rgb_array"),
    reward=result["episode_reward_mean"],
    policy=result["policy_reward_mean"],
    length=result["episode_len_mean"],
)
trainer.stop()
