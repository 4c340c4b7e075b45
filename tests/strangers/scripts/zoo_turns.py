"""A game of PettingZoo's AEC API of its time (`dones`, `last()` of four) through Ray's wrapper."""

import gym
import numpy as np
import ray
from facts import record
from ray.rllib.agents.ppo import PPOTrainer
from ray.rllib.env import PettingZooEnv
from ray.tune.registry import register_env


class Nim:
    """Two players take matches in turn; what PettingZoo's `AECEnv` promised until 1.21."""

    metadata = {"name": "nim"}
    possible_agents = ["first", "second"]

    def observation_space(self, agent):
        return gym.spaces.Box(0, 9, (2,), np.float32)

    def action_space(self, agent):
        return gym.spaces.Discrete(2)

    @property
    def observation_spaces(self):
        return {a: self.observation_space(a) for a in self.possible_agents}

    @property
    def action_spaces(self):
        return {a: self.action_space(a) for a in self.possible_agents}

    def reset(self):
        self.agents = list(self.possible_agents)
        self.left = 6
        self.agent_selection = "first"
        self.dones = {a: False for a in self.agents}
        self.rewards = {a: 0.0 for a in self.agents}
        self.sums = {a: 0.0 for a in self.agents}
        self.infos = {a: {} for a in self.agents}

    def observe(self, agent):
        return np.array([self.left, self.possible_agents.index(agent)], np.float32)

    def last(self, observe=True):
        agent = self.agent_selection
        return self.observe(agent), self.sums[agent], self.dones[agent], self.infos[agent]

    def step(self, action):
        agent = self.agent_selection
        if self.dones[agent]:
            assert action is None
            self.agents.remove(agent)
            if self.agents:
                self.agent_selection = self.agents[0]
            return
        self.sums[agent] = 0.0
        self.left -= 1
        other = [a for a in self.possible_agents if a != agent][0]
        if self.left == 0:
            self.sums = {agent: -1.0, other: 1.0}
            self.dones = {a: True for a in self.dones}
        self.agent_selection = other

    def close(self):
        pass

    def seed(self, seed=None):
        pass

    @property
    def unwrapped(self):
        return self


register_env("nim", lambda config: PettingZooEnv(Nim()))
env = PettingZooEnv(Nim())
first = env.reset()
path = []
done = {"__all__": False}
obs = first
while not done["__all__"]:
    (agent,) = [a for a in obs if not done.get(a)]
    obs, rewards, done, _ = env.step({agent: 0})
    path.append([sorted(obs), rewards, {k: bool(v) for k, v in done.items()}])

ray.init()
policy = (None, env.observation_space, env.action_space, {})
trainer = PPOTrainer(
    env="nim",
    config={
        "num_workers": 0,
        "framework": "torch",
        "rollout_fragment_length": 60,
        "train_batch_size": 60,
        "sgd_minibatch_size": 30,
        "num_sgd_iter": 1,
        "multiagent": {
            "policies": {"first": policy, "second": policy},
            "policy_mapping_fn": lambda agent, *_, **__: agent,
        },
    },
)
result = trainer.train()
record(
    spaces=[type(env.observation_space).__name__, env.action_space.n],
    first={k: v for k, v in first.items()},
    path=path[-2:],
    steps=len(path),
    rewards=result["policy_reward_mean"],
    length=result["episode_len_mean"],
)
trainer.stop()
