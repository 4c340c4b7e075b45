"""A torch model of one's own that reads a dict of observations, with options of its own."""

import gym
import numpy as np
import ray
import torch
import torch.nn as nn
from facts import record
from ray.rllib.agents.ppo import PPOTrainer
from ray.rllib.models import ModelCatalog
from ray.rllib.models.torch.torch_modelv2 import TorchModelV2
from ray.rllib.utils.annotations import override


class Yard(gym.Env):
    def __init__(self, config):
        self.observation_space = gym.spaces.Dict(
            {
                "map": gym.spaces.Box(0, 1, (2, 3), np.float32),
                "self": gym.spaces.Box(-1, 1, (4,), np.float32),
            }
        )
        self.action_space = gym.spaces.Discrete(3)

    def look(self):
        return {"map": np.ones((2, 3), np.float32), "self": np.zeros(4, np.float32)}

    def reset(self):
        self.n = 0
        return self.look()

    def step(self, action):
        self.n += 1
        return self.look(), 1.0, self.n == 5, {}


class TwoParts(TorchModelV2, nn.Module):
    def __init__(self, obs_space, action_space, num_outputs, model_config, name, **options):
        TorchModelV2.__init__(self, obs_space, action_space, num_outputs, model_config, name)
        nn.Module.__init__(self)
        width = model_config["custom_model_config"]["width"]
        self.spaces = sorted(obs_space.original_space.spaces)
        self.map_part = nn.Linear(6, width)
        self.self_part = nn.Linear(4, width)
        self.out = nn.Linear(2 * width, num_outputs)
        self.value = nn.Linear(2 * width, 1)
        self.shapes = None

    @override(TorchModelV2)
    def forward(self, input_dict, state, seq_lens):
        obs = input_dict["obs"]
        self.shapes = [list(obs["map"].shape[1:]), list(input_dict["obs_flat"].shape[1:])]
        flat = obs["map"].reshape(obs["map"].shape[0], -1)
        self.features = torch.cat([self.map_part(flat), self.self_part(obs["self"])], 1).relu()
        return self.out(self.features), state

    @override(TorchModelV2)
    def value_function(self):
        return self.value(self.features).reshape(-1)


ModelCatalog.register_custom_model("two_parts", TwoParts)
ray.init()
trainer = PPOTrainer(
    env=Yard,
    config={
        "num_workers": 0,
        "framework": "torch",
        "rollout_fragment_length": 40,
        "train_batch_size": 40,
        "sgd_minibatch_size": 20,
        "num_sgd_iter": 1,
        "model": {"custom_model": "two_parts", "custom_model_config": {"width": 6}},
    },
)
before = trainer.get_policy().model.out.weight.detach().numpy().copy()
result = trainer.train()
model = trainer.get_policy().model
weights = trainer.get_policy().get_weights()
record(
    shapes=model.shapes,
    spaces=model.spaces,
    names=sorted(weights),
    parameters=sum(p.numel() for p in model.parameters()),
    changed=not np.allclose(before, model.out.weight.detach().numpy()),
    outputs=model.num_outputs,
    reward=result["episode_reward_mean"],
)
trainer.stop()
