"""Weights of a supervised network brought in by `import_model`, with a torch model of one's own."""

import os
import tempfile

import gym
import numpy as np
import ray
import torch
from facts import record
from ray.rllib.agents.ppo import PPOTrainer
from ray.rllib.models import ModelCatalog
from ray.rllib.models.torch.torch_modelv2 import TorchModelV2


class Pretrained(TorchModelV2, torch.nn.Module):
    def __init__(self, obs_space, action_space, num_outputs, model_config, name):
        TorchModelV2.__init__(self, obs_space, action_space, num_outputs, model_config, name)
        torch.nn.Module.__init__(self)
        self.body = torch.nn.Linear(obs_space.shape[0], 6)
        self.actor = torch.nn.Linear(6, num_outputs)
        self.critic = torch.nn.Linear(6, 1)

    def forward(self, input_dict, state, seq_lens):
        self.seen = torch.relu(self.body(input_dict["obs"].float()))
        return self.actor(self.seen), state

    def value_function(self):
        return self.critic(self.seen).reshape(-1)

    def import_from_h5(self, h5_file):
        self.body.load_state_dict(torch.load(h5_file))


class Slope(gym.Env):
    def __init__(self, config):
        self.observation_space = gym.spaces.Box(-1, 9, (3,), np.float32)
        self.action_space = gym.spaces.Discrete(2)
        self.metres = 0

    def reset(self):
        self.metres = 0
        return np.zeros(3, np.float32)

    def step(self, action):
        self.metres += 1
        return np.full(3, self.metres, np.float32), 1.0, self.metres == 5, {}


body = torch.nn.Linear(3, 6)
torch.nn.init.constant_(body.weight, 0.25)
torch.nn.init.constant_(body.bias, -0.5)
path = os.path.join(tempfile.mkdtemp(), "body.pt")
torch.save(body.state_dict(), path)

ModelCatalog.register_custom_model("pretrained", Pretrained)
ray.init(num_cpus=4)
trainer = PPOTrainer(
    env=Slope,
    config={
        "num_workers": 1,
        "framework": "torch",
        "rollout_fragment_length": 25,
        "train_batch_size": 25,
        "sgd_minibatch_size": 25,
        "num_sgd_iter": 1,
        "lr": 0.0,
        "model": {"custom_model": "pretrained"},
    },
)
missing = None
try:
    trainer.import_model(path + ".no")
except FileNotFoundError as error:
    missing = type(error).__name__
trainer.import_model(path)


def of_body(worker):
    return worker.get_policy().get_weights()["body.weight"].ravel()[:2].tolist()


result = trainer.train()
trainer.get_policy().set_weights(
    {name: np.zeros_like(value) for name, value in trainer.get_policy().get_weights().items()}
)
trainer.import_policy_model_from_h5(path)
record(
    missing=missing,
    trained=of_body(trainer.workers.local_worker()),
    bias=trainer.get_policy().get_weights()["body.bias"],
    actor=float(np.abs(trainer.get_policy().get_weights()["actor.weight"]).sum()),
    reward=result["episode_reward_mean"],
)
trainer.stop()
