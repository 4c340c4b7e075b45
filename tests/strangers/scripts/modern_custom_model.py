"""A torch model of one's own in the days of 2.3 to 2.9, with parameters in the config."""

import gymnasium as gym
import numpy as np
import ray
import torch
from facts import record
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.models import ModelCatalog
from ray.rllib.models.torch.torch_modelv2 import TorchModelV2


class Mixer(TorchModelV2, torch.nn.Module):
    def __init__(self, obs_space, action_space, num_outputs, model_config, name, width=3):
        TorchModelV2.__init__(self, obs_space, action_space, num_outputs, model_config, name)
        torch.nn.Module.__init__(self)
        self.width = width
        self.trunk = torch.nn.Linear(obs_space.shape[0], width)
        self.head = torch.nn.Linear(width, num_outputs)
        self.value = torch.nn.Linear(width, 1)

    def forward(self, input_dict, state, seq_lens):
        self.features = torch.tanh(self.trunk(input_dict["obs_flat"].float()))
        return self.head(self.features), state

    def value_function(self):
        return self.value(self.features).squeeze(-1)


class Belt(gym.Env):
    def __init__(self, config):
        self.observation_space = gym.spaces.MultiDiscrete([3, 4])
        self.action_space = gym.spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        self.n = 0
        return np.array([0, 0]), {}

    def step(self, action):
        self.n += 1
        return np.array([self.n % 3, self.n % 4]), 1.0, self.n == 5, False, {}


ModelCatalog.register_custom_model("mixer", Mixer)
ray.init()
config = (
    PPOConfig()
    .environment(Belt)
    .framework("torch")
    .rollouts(num_rollout_workers=0, rollout_fragment_length=20)
    .training(
        train_batch_size=20,
        sgd_minibatch_size=10,
        num_sgd_iter=1,
        model={"custom_model": "mixer", "custom_model_config": {"width": 5}},
    )
    .rl_module(_enable_rl_module_api=False)
    .training(_enable_learner_api=False)
)
agent = config.build()
told = agent.train()
model = agent.get_policy().model
record(
    width=model.width,
    names=sorted(agent.get_policy().get_weights()),
    shape=agent.get_policy().get_weights()["trunk.weight"].shape,
    reward=told["episode_reward_mean"],
)
agent.stop()
