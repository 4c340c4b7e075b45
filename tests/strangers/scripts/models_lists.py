"""A list of players of changing length as a Repeated space, for a model of one's own."""

import gym
import numpy as np
import ray
import torch
from facts import record
from ray.rllib.agents import ppo
from ray.rllib.models import ModelCatalog
from ray.rllib.models.torch.torch_modelv2 import TorchModelV2
from ray.rllib.utils.spaces.repeated import Repeated
from torch import nn

PLAYER = gym.spaces.Dict(
    {"pos": gym.spaces.Box(-9, 9, (2,), np.float32), "team": gym.spaces.Discrete(2)}
)


class Field(gym.Env):
    def __init__(self, config=None):
        clock = gym.spaces.Box(0, 99, (1,), np.float32)
        players = Repeated(PLAYER, max_len=4)
        self.observation_space = gym.spaces.Dict({"clock": clock, "players": players})
        self.action_space = gym.spaces.Discrete(2)

    def look(self):
        players = [
            {"pos": np.full(2, self.n, np.float32), "team": i % 2} for i in range(self.n % 4 + 1)
        ]
        return {"clock": np.array([self.n], np.float32), "players": players}

    def reset(self):
        self.n = 0
        return self.look()

    def step(self, action):
        self.n += 1
        return self.look(), 1.0, self.n == 6, {}


class Net(TorchModelV2, nn.Module):
    def __init__(self, obs_space, action_space, num_outputs, model_config, name):
        TorchModelV2.__init__(self, obs_space, action_space, num_outputs, model_config, name)
        nn.Module.__init__(self)
        self.inner = nn.Linear(4, 8)
        self.out = nn.Linear(9, num_outputs)
        self.worth = nn.Linear(9, 1)
        self.lists = {}

    def forward(self, input_dict, state, seq_lens):
        players, clock = input_dict["obs"]["players"], input_dict["obs"]["clock"]
        values = players.values
        if len(clock) == 1:
            shapes = [list(values[key].shape) for key in ("pos", "team")]
            self.lists[int(clock[0, 0])] = [int(players.lengths[0]), players.max_len, shapes]
        inner = self.inner(torch.cat([values["pos"], values["team"].float()], -1)).sum(1)
        self.features = torch.cat([inner, clock], -1)
        return self.out(self.features), state

    def value_function(self):
        return self.worth(self.features).squeeze(1)


ray.init()
ModelCatalog.register_custom_model("players", Net)
agent = ppo.PPOTrainer(
    env=Field,
    config={
        "num_workers": 0,
        "framework": "torch",
        "train_batch_size": 24,
        "rollout_fragment_length": 24,
        "sgd_minibatch_size": 12,
        "num_sgd_iter": 1,
        "model": {"custom_model": "players"},
    },
)
result = agent.train()
env = Field()
obs, done, steps = env.reset(), False, 0
while not done:
    obs, _, done, _ = env.step(agent.compute_single_action(obs))
    steps += 1
lists = agent.get_policy().model.lists
record(
    lists={clock: lists[clock] for clock in (0, 1, 2, 3)},
    reward=result["episode_reward_mean"],
    steps=steps,
    parameters=sorted(agent.get_weights()["default_policy"]),
)
agent.stop()
