"""A model that adds a loss of its own and tells it in `metrics`."""

import gym
import numpy as np
import ray
import torch
import torch.nn as nn
from facts import record
from ray.rllib.agents.pg import PGTrainer
from ray.rllib.models import ModelCatalog
from ray.rllib.models.torch.fcnet import FullyConnectedNetwork
from ray.rllib.models.torch.torch_modelv2 import TorchModelV2


class Disk(gym.Env):
    def __init__(self, config):
        self.observation_space = gym.spaces.Box(0, 1, (2,), np.float32)
        self.action_space = gym.spaces.Discrete(2)

    def reset(self):
        self.n = 0
        return np.zeros(2, np.float32)

    def step(self, action):
        self.n += 1
        return np.ones(2, np.float32), 1.0, self.n == 5, {}


class Penalized(TorchModelV2, nn.Module):
    def __init__(self, obs_space, action_space, num_outputs, model_config, name):
        nn.Module.__init__(self)
        given = (obs_space, action_space, num_outputs, model_config)
        TorchModelV2.__init__(self, *given, name)
        self.calls = 0
        self.inner = FullyConnectedNetwork(*given, name="inside")

    def forward(self, input_dict, state, seq_lens):
        return self.inner(input_dict, state, seq_lens)

    def value_function(self):
        return self.inner.value_function()

    def custom_loss(self, policy_loss, loss_inputs):
        self.calls += 1
        self.penalty = torch.tensor(0.25)
        return [loss + self.penalty for loss in policy_loss]

    def metrics(self):
        return {"penalty": self.penalty.item()}


ModelCatalog.register_custom_model("penalized", Penalized)
ray.init()
trainer = PGTrainer(
    env=Disk,
    config={
        "num_workers": 0,
        "framework": "torch",
        "rollout_fragment_length": 20,
        "train_batch_size": 20,
        "model": {"custom_model": "penalized", "fcnet_hiddens": [4]},
    },
)
result = trainer.train()
stats = result["info"]["learner"]["default_policy"]
record(
    calls=trainer.get_policy().model.calls > 0,
    penalty=stats.get("model", {}).get("penalty"),
    reward=result["episode_reward_mean"],
)
trainer.stop()
