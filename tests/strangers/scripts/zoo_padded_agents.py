"""PettingZoo of 1.11 to 1.21, padded by wrappers, with agents of two sizes that leave early."""

import gym
import numpy as np
import ray
from facts import record
from ray.rllib.agents.dqn import DQNTrainer
from ray.rllib.env.wrappers.pettingzoo_env import PettingZooEnv
from ray.tune.registry import register_env


class Ferry:
    """A large and a small boat cross in turn; the small one arrives first."""

    metadata = {"render.modes": ["human"], "name": "ferry"}

    def __init__(self, width=4):
        self.possible_agents = ["large", "small"]
        self.agents = self.possible_agents[:]
        sizes = {"large": width, "small": 2}
        self.crossings = {"large": 4, "small": 2}
        self.observation_spaces = {
            boat: gym.spaces.Box(0.0, 9.0, (size,), np.float32) for boat, size in sizes.items()
        }
        self.action_spaces = {"large": gym.spaces.Discrete(4), "small": gym.spaces.Discrete(2)}

    def observation_space(self, agent):
        return self.observation_spaces[agent]

    def action_space(self, agent):
        return self.action_spaces[agent]

    def seed(self, seed=None):
        self.seeded = seed

    def reset(self):
        self.agents = self.possible_agents[:]
        self.done_crossings = dict.fromkeys(self.agents, 0)
        self.dones = dict.fromkeys(self.agents, False)
        self.infos = {boat: {} for boat in self.agents}
        self.rewards = dict.fromkeys(self.agents, 0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0)
        self.agent_selection = "large"

    def observe(self, agent):
        shape = self.observation_spaces[agent].shape
        return np.full(shape, self.done_crossings[agent], np.float32)

    def last(self, observe=True):
        boat = self.agent_selection
        seen = self.observe(boat) if observe else None
        return seen, self._cumulative_rewards[boat], self.dones[boat], self.infos[boat]

    def step(self, action):
        boat = self.agent_selection
        others = [other for other in self.agents if other != boat]
        if self.dones[boat]:
            assert action is None
            self.agents.remove(boat)
            self.agent_selection = others[0] if others else boat
            return
        assert self.action_spaces[boat].contains(int(action)), (boat, action)
        self._cumulative_rewards[boat] = 0
        self.done_crossings[boat] += 1
        self.rewards = {other: float(other == boat) for other in self.agents}
        for other in self.agents:
            self._cumulative_rewards[other] += self.rewards[other]
        self.dones[boat] = self.done_crossings[boat] >= self.crossings[boat]
        self.agent_selection = others[0] if others else boat

    def close(self):
        pass


class Around:
    """What wrappers of such environments are: all the rest comes from inside."""

    def __init__(self, env):
        self.env = env

    def __getattr__(self, name):
        return getattr(self.env, name)


class PadObservations(Around):
    """Observations of all agents as long as the longest."""

    def __init__(self, env):
        super().__init__(env)
        longest = max(env.observation_spaces.values(), key=lambda space: space.shape)
        self.observation_spaces = dict.fromkeys(env.observation_spaces, longest)
        self.shape = longest.shape

    def observation_space(self, agent):
        return self.observation_spaces[agent]

    def observe(self, agent):
        padded = np.zeros(self.shape, np.float32)
        seen = self.env.observe(agent)
        padded[: len(seen)] = seen
        return padded

    def last(self, observe=True):
        _, *rest = self.env.last(False)
        return (self.observe(self.env.agent_selection), *rest)


class PadActions(Around):
    """As many actions for all agents; those that one has not are its first."""

    def __init__(self, env):
        super().__init__(env)
        most = max(space.n for space in env.action_spaces.values())
        self.action_spaces = dict.fromkeys(env.action_spaces, gym.spaces.Discrete(most))

    def action_space(self, agent):
        return self.action_spaces[agent]

    def step(self, action):
        allowed = self.env.action_spaces[self.env.agent_selection].n
        self.env.step(action if action is None or action < allowed else 0)


def make_ferry(config):
    return PettingZooEnv(PadActions(PadObservations(Ferry(**config))))


register_env("ferry", make_ferry)
env = make_ferry({})
seen = env.reset()
rows, done = [seen], {"__all__": False}
while not done["__all__"]:
    boat = next(boat for boat in seen if not done.get(boat))
    seen, rewards, done, infos = env.step({boat: 3})
    rows.append([seen, rewards, done])

ray.init()
policy = (None, env.observation_space, env.action_space, {})
trainer = DQNTrainer(
    env="ferry",
    config={
        "num_workers": 0,
        "framework": "torch",
        "env_config": {"width": 4},
        "hiddens": [8],
        "rollout_fragment_length": 12,
        "train_batch_size": 12,
        "learning_starts": 24,
        "timesteps_per_iteration": 36,
        "buffer_size": 400,
        "multiagent": {
            "policies": {"boats": policy},
            "policy_mapping_fn": lambda agent, *_, **__: "boats",
        },
    },
)
result = trainer.train()
record(
    spaces=[env.observation_space.shape, env.action_space.n],
    rows=rows,
    reward=result["episode_reward_mean"],
    agents=result["policy_reward_mean"],
    length=result["episode_len_mean"],
)
trainer.stop()
