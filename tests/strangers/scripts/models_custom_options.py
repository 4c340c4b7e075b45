"""`custom_options` of Ray 0.8 reach a model, and its own keys are there."""

import gym
import numpy as np
import ray
import torch.nn as nn
from facts import record
from ray.rllib.agents.ppo import PPOTrainer
from ray.rllib.models import ModelCatalog
from ray.rllib.models.torch.torch_modelv2 import TorchModelV2

seen = {}


class Bin(gym.Env):
    def __init__(self, config):
        self.observation_space = gym.spaces.Box(0, 1, (3,), np.float32)
        self.action_space = gym.spaces.Discrete(2)

    def reset(self):
        self.n = 0
        return np.zeros(3, np.float32)

    def step(self, action):
        self.n += 1
        return np.ones(3, np.float32), 1.0, self.n == 5, {}


class Small(TorchModelV2, nn.Module):
    def __init__(self, obs_space, action_space, num_outputs, model_config, name, **options):
        TorchModelV2.__init__(self, obs_space, action_space, num_outputs, model_config, name)
        nn.Module.__init__(self)
        seen.update(model_config["custom_options"], name=name, outputs=num_outputs)
        assert options == model_config["custom_options"]
        self.layers = nn.Sequential(nn.Linear(3, options["size"]), nn.Tanh())
        self.logits = nn.Linear(options["size"], num_outputs)
        self.values = nn.Linear(options["size"], 1)

    def forward(self, input_dict, state, seq_lens):
        self.features = self.layers(input_dict["obs"].float())
        return self.logits(self.features), state

    def value_function(self):
        return self.values(self.features).squeeze(1)


ModelCatalog.register_custom_model("small", Small)
ray.init()
trainer = PPOTrainer(
    env=Bin,
    config={
        "num_workers": 0,
        "use_pytorch": True,
        "rollout_fragment_length": 20,
        "train_batch_size": 40,
        "sgd_minibatch_size": 20,
        "num_sgd_iter": 1,
        "model": {"custom_model": "small", "custom_options": {"size": 5, "kind": "a"}},
    },
)
result = trainer.train()
weights = trainer.get_policy().get_weights()
record(
    seen=seen,
    names=sorted(weights),
    reward=result["episode_reward_mean"],
    first=weights["layers.0.weight"].shape,
)
trainer.stop()
