"""RLModules as users write them, for the custom models of `tests/legacy/generate_custom.py`."""

import torch
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.apis.value_function_api import ValueFunctionAPI
from ray.rllib.core.rl_module.torch.torch_rl_module import TorchRLModule
from torch import nn


class Plain(TorchRLModule, ValueFunctionAPI):
    """Takes a vector."""

    def setup(self):
        super().setup()
        self.hidden = nn.Linear(self.inputs(), 9)
        self.out = nn.Linear(9, self.action_space.n)
        self.value = nn.Linear(9, 1)

    def inputs(self):
        return self.observation_space.shape[0]

    def features(self, batch):
        return torch.tanh(self.hidden(batch[Columns.OBS]))

    def logits(self, batch):
        return self.out(self.features(batch))

    def _forward(self, batch, **_):
        return {Columns.ACTION_DIST_INPUTS: self.logits(batch)}

    def compute_values(self, batch, embeddings=None):
        return self.value(self.features(batch)).squeeze(-1)


class Masked(Plain):
    """Takes the parts of a Dict by name."""

    def inputs(self):
        return self.observation_space["seen"].shape[0]

    def features(self, batch):
        return torch.tanh(self.hidden(batch[Columns.OBS]["seen"]))

    def logits(self, batch):
        return super().logits(batch) + 5.0 * batch[Columns.OBS]["mask"]


class Flat(Plain):
    """Takes the same observations in one vector: first the mask, then what is seen."""

    def inputs(self):
        return self.observation_space.shape[0] - 3

    def features(self, batch):
        return torch.tanh(self.hidden(batch[Columns.OBS][:, 3:]))

    def logits(self, batch):
        return super().logits(batch) + 5.0 * batch[Columns.OBS][:, :3]


class Keras(Plain):
    """Has its layers in another order than the old model."""

    def setup(self):
        TorchRLModule.setup(self)
        self.value = nn.Linear(7, 1)
        self.hidden_1 = nn.Linear(self.inputs(), 9)
        self.hidden_2 = nn.Linear(9, 7)
        self.out = nn.Linear(7, self.action_space.n)

    def features(self, batch):
        return torch.tanh(self.hidden_2(torch.tanh(self.hidden_1(batch[Columns.OBS]))))


class Renamed(Keras):
    """Has other names than the old model, so that only shapes tell."""

    def setup(self):
        TorchRLModule.setup(self)
        self.critic = nn.Linear(7, 1)
        self.encoder = nn.Sequential(nn.Linear(self.inputs(), 9), nn.Tanh(), nn.Linear(9, 7))
        self.actor = nn.Linear(7, self.action_space.n)

    def features(self, batch):
        return torch.tanh(self.encoder(batch[Columns.OBS]))

    def logits(self, batch):
        return self.actor(self.features(batch))

    def compute_values(self, batch, embeddings=None):
        return self.critic(self.features(batch)).squeeze(-1)


class Broken(Plain):
    """Can be built with nothing."""

    def inputs(self):
        raise KeyError("no such layer")
